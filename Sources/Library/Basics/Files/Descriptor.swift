package import SystemPackage

/// An open file or directory, closed when its owner lets go of it.
package struct Descriptor: ~Copyable, Sendable {
  /// For calls while the owner keeps it open.
  package let raw: FileDescriptor

  init(_ raw: FileDescriptor) { self.raw = raw }

  /// Closes now and reports what only closing can tell, such as a write that a network file system refused late.
  package consuming func close(_ system: FileSystem) throws(Errno) {
    let raw = self.raw
    discard self
    var reason: Errno?
    do { try raw.close() } catch { reason = error as? Errno ?? .ioError }
    if let fault = system.fault(in: .close) { throw fault }
    // It is closed all the same, and its number may be another's by now.
    if let reason, reason != .interrupted { throw reason }
  }

  deinit { try? raw.close() }
}

package import SystemPackage

/// An open file or directory that is closed when the value is destroyed.
package struct OwnedFileDescriptor: ~Copyable, Sendable {
  /// The descriptor, valid only while its owner exists.
  package let raw: FileDescriptor

  init(_ raw: FileDescriptor) { self.raw = raw }

  /// Closes the file and reports errors that only closing reveals, such as a write that a network file system refused
  /// late.
  package consuming func close(_ system: FileSystem) throws(Errno) {
    let raw = self.raw
    discard self
    var reason: Errno?
    do { try raw.close() } catch { reason = error as? Errno ?? .ioError }
    if let fault = system.fault(in: .close) { throw fault }
    // An interrupted call has also closed the file, and its descriptor may belong to another file by now.
    if let reason, reason != .interrupted { throw reason }
  }

  deinit { try? raw.close() }
}

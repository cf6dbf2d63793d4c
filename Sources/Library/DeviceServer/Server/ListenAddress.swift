import Basics
package import SystemPackage

/// The address at which a server listens, only for this machine.
package enum ListenAddress: Sendable, Hashable {
  /// A port of 127.0.0.1 or ::1; 0 for any free port.
  case loopback(port: UInt16, usesIPv6: Bool)
  /// A socket at a path.
  case path(String)

  /// Reads an address: `127.0.0.1:PORT`, `[::1]:PORT`, or a path that contains a slash or ends in `.sock`.
  ///
  /// - Returns: `nil` if the text is anything else, such as an address of another machine.
  package init?(_ text: String) {
    func port(after prefix: String) -> UInt16? { text.hasPrefix(prefix) ? UInt16(text.dropFirst(prefix.count)) : nil }
    if let port = port(after: "127.0.0.1:") {
      self = .loopback(port: port, usesIPv6: false)
    } else if let port = port(after: "[::1]:") {
      self = .loopback(port: port, usesIPv6: true)
    } else if text.contains("/") || (text.hasSuffix(".sock") && !text.contains(":")) {
      self = .path(text)
    } else {
      return nil
    }
  }

  /// The paths of the system's own usbmuxd, which a virtual usbmuxd never replaces.
  private static let systemPaths = ["/var/run/usbmuxd", "/run/usbmuxd"]

  /// Returns whether a path is the system's own usbmuxd, even under another name of its directory.
  package static func isSystemSocket(_ path: String) -> Bool {
    guard let socket = DestinationPath(path) else { return false }
    let system = FileSystem.real
    for systemPath in systemPaths {
      if path == systemPath { return true }
      guard let systemSocket = DestinationPath(systemPath), socket.name == systemSocket.name,
        let directory = try? system.status(of: socket.parent, followsLink: true),
        let systemDirectory = try? system.status(of: systemSocket.parent, followsLink: true)
      else { continue }
      if directory.isSame(as: systemDirectory) { return true }
    }
    return false
  }
}

/// A reason why a server cannot listen.
package enum ListenError: Error, Sendable, Hashable {
  /// The address is the system's own usbmuxd.
  case systemSocket(String)
  /// Another server answers at the path.
  case answered(String)
  /// Something other than the current user's unused socket is at the path.
  case occupied(String)
  /// The system reports an error for a path or port.
  case system(String, Errno)
}

/// A listening socket. If it has a file, the file is removed with it.
final class Listener: Sendable {
  let socket: ListeningSocket
  /// The address for clients, as the value of `USBMUXD_SOCKET_ADDRESS`.
  let address: String

  init(_ address: ListenAddress) throws(ListenError) {
    switch address {
    case .loopback(let port, let usesIPv6):
      do throws(Errno) {
        socket = try ListeningSocket(loopbackPort: port, usesIPv6: usesIPv6)
      } catch {
        throw .system("port \(port)", error)
      }
      self.address = "\(usesIPv6 ? "[::1]" : "127.0.0.1"):\(socket.port ?? port)"
    case .path(let path):
      socket = try Self.listen(at: path)
      self.address = "UNIX:\(socket.path ?? path)"
    }
  }

  deinit {
    guard let path = socket.path else { return }
    try? FileSystem.real.remove(path)
  }

  private static func listen(at path: String) throws(ListenError) -> ListeningSocket {
    guard !ListenAddress.isSystemSocket(path) else { throw .systemSocket(path) }
    try removeLeftover(at: path)
    do throws(Errno) { return try ListeningSocket(path: path) } catch { throw .system(path, error) }
  }

  /// Removes a socket that a killed server has left behind. No server answers at such a socket.
  ///
  /// - Throws: `.answered` or `.occupied` if anything else is at the path.
  private static func removeLeftover(at path: String) throws(ListenError) {
    let status: FileStatus?
    do throws(Errno) { status = try FileSystem.real.status(of: path) } catch { throw .system(path, error) }
    guard let status else { return }
    guard status.kind == .other, status.belongsToCurrentUser else { throw .occupied(path) }
    guard try !isAnswered(path) else { throw .answered(path) }
    do throws(Errno) { try FileSystem.real.remove(path) } catch { throw .system(path, error) }
  }

  /// Returns whether a server answers at the socket.
  private static func isAnswered(_ path: String) throws(ListenError) -> Bool {
    do throws(Errno) {
      _ = try StreamSocket(path: path)
      return true
    } catch {
      guard error == .connectionRefused else { throw .occupied(path) }
      return false
    }
  }
}

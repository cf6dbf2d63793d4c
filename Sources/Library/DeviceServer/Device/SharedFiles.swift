import Basics

/// The files that clients see through AFC: a small tree in memory, with the lock that prevents two
/// synchronizations at the same time.
///
/// It contains no file of this machine.
package final class SharedFiles: Sendable {
  /// A file or a directory.
  package struct Node: Sendable {
    package var isDirectory: Bool
    package var bytes: [UInt8] = []
  }

  private struct State {
    var nodes: [String: Node] = ["/": Node(isDirectory: true)]
    /// The connection that holds the lock. Clients lock only one file, so one lock is enough.
    var lockHolder: ObjectIdentifier?
  }

  private static let maximumNodeCount = 64
  private static let maximumByteCount = 16 << 20
  private let state = Locked(State())

  package init() {}

  /// Returns a path below the root, without empty parts, `.` and `..`.
  ///
  /// - Returns: `nil` if the path is longer than 1,024 bytes or not UTF-8.
  package static func normalized(_ bytes: some Collection<UInt8>) -> String? {
    guard bytes.count <= 1024, let text = String(validating: bytes, as: UTF8.self) else { return nil }
    var parts: [Substring] = []
    for part in text.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }

  private static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }

  private static func name(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return path }
    return String(path[path.index(after: slash)...])
  }

  package func node(at path: String) -> Node? { state.withLock { $0.nodes[path] } }

  /// Returns the names in a directory; `nil` if there is no such directory.
  package func names(in path: String) -> [String]? {
    state.withLock { state in
      guard state.nodes[path]?.isDirectory == true else { return nil }
      let children = state.nodes.keys.filter { $0 != "/" && Self.parent(of: $0) == path }
      return children.sorted().map { Self.name(of: $0) }
    }
  }

  /// Creates a directory if it does not exist.
  ///
  /// - Returns: Whether the directory exists now.
  package func makeDirectory(_ path: String) -> Bool { make(path, isDirectory: true, truncates: false) }

  /// Creates a file if it does not exist. An existing file is emptied if `truncates` is `true`.
  ///
  /// - Returns: Whether the file exists now.
  package func makeFile(_ path: String, truncates: Bool) -> Bool {
    make(path, isDirectory: false, truncates: truncates)
  }

  private func make(_ path: String, isDirectory: Bool, truncates: Bool) -> Bool {
    state.withLock { state in
      if let node = state.nodes[path] {
        if truncates, !node.isDirectory { state.nodes[path]?.bytes = [] }
        return node.isDirectory == isDirectory
      }
      guard state.nodes.count < Self.maximumNodeCount, state.nodes[Self.parent(of: path)]?.isDirectory == true else {
        return false
      }
      state.nodes[path] = Node(isDirectory: isDirectory)
      return true
    }
  }

  /// Writes bytes at a position of a file; a gap is filled with zeros.
  ///
  /// - Returns: `false` if there is no such file, or not enough space.
  package func write(_ bytes: some Collection<UInt8>, to path: String, at offset: Int) -> Bool {
    state.withLock { state in
      guard var node = state.nodes[path], !node.isDirectory, offset <= Self.maximumByteCount,
        bytes.count <= Self.maximumByteCount - offset
      else { return false }
      let otherByteCount = state.nodes.reduce(0) { $0 + ($1.key == path ? 0 : $1.value.bytes.count) }
      guard max(node.bytes.count, offset + bytes.count) <= Self.maximumByteCount - otherByteCount else { return false }
      state.nodes[path] = nil
      if node.bytes.count < offset + bytes.count {
        node.bytes += [UInt8](repeating: 0, count: offset + bytes.count - node.bytes.count)
      }
      node.bytes.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
      state.nodes[path] = node
      return true
    }
  }

  /// Removes a file or an empty directory.
  ///
  /// - Returns: `false` if it does not exist, or is a directory that is not empty.
  package func remove(_ path: String) -> Bool {
    state.withLock { state in
      guard path != "/", state.nodes[path] != nil,
        !state.nodes.keys.contains(where: { $0.hasPrefix(path + "/") })
      else { return false }
      state.nodes[path] = nil
      return true
    }
  }

  /// Takes the lock for a connection.
  ///
  /// - Returns: `false` if another connection holds it.
  package func lock(for holder: AnyObject) -> Bool {
    state.withLock { state in
      guard state.lockHolder == nil || state.lockHolder == ObjectIdentifier(holder) else { return false }
      state.lockHolder = ObjectIdentifier(holder)
      return true
    }
  }

  /// Releases the lock, if the connection holds it.
  package func unlock(for holder: AnyObject) {
    state.withLock { state in
      if state.lockHolder == ObjectIdentifier(holder) { state.lockHolder = nil }
    }
  }
}

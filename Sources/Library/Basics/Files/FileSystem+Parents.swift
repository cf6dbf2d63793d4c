package import SystemPackage

extension FileSystem {
  /// Makes a directory at a path that the user typed, and those above it that are missing, each for its owner alone.
  /// Links in the path are followed.
  package func makeDirectories(_ path: String) throws(Errno) {
    do throws(Errno) {
      try makeDirectory(path)
    } catch {
      guard error == .noSuchFileOrDirectory, let parent = PlacePath(path)?.parent, parent.utf8.count < path.utf8.count
      else { throw error }
      try makeDirectories(parent)
      try makeDirectory(path)
    }
  }
}

package import SystemPackage

extension Errno {
  /// The system's reason for refusing a call, as a part of a sentence: "no such file or directory".
  package var reason: String {
    let text = description
    guard let first = text.first else { return "system error \(rawValue)" }
    // musl has "I/O error", which must keep its capital.
    guard text.dropFirst().first?.isLowercase == true else { return text }
    return first.lowercased() + text.dropFirst()
  }

  /// Whether the file, or a directory on its path, does not exist.
  package var isNotFound: Bool { self == .noSuchFileOrDirectory || self == .notDirectory }

  /// Whether no space is left: the disk is full, or the user's quota is used up.
  package var isDiskFull: Bool { self == .noSpace || self == .diskQuotaExceeded }

  /// Whether the system has run out of file descriptors or memory. The file is not the cause of such an error.
  package var isResourceShortage: Bool { Self.shortages.contains(self) }

  /// Recognizes a shortage by the end of a library's error message; `nil` if there is none.
  package static func resourceShortage(in text: String) -> Errno? { shortages.first { text.hasSuffix($0.description) } }

  private static let shortages: [Errno] = [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory]
}

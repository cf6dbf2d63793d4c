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

  /// Whether no file has the name.
  package var isNotFound: Bool { self == .noSuchFileOrDirectory || self == .notDirectory }

  /// Whether no space is left: the disk is full, or the user's quota is used up.
  package var isDiskFull: Bool { self == .noSpace || self == .diskQuotaExceeded }

  /// Whether the system is short of descriptors or memory, which every call needs, so that the error does not concern
  /// the file.
  package var isShortage: Bool { Self.shortages.contains(self) }

  /// Returns the shortage that a library reports only in words; `nil` if its text does not end with one.
  package static func shortage(in text: String) -> Errno? { shortages.first { text.hasSuffix($0.description) } }

  private static let shortages: [Errno] = [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory]
}

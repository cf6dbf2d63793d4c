package import SystemPackage

extension Errno {
  /// The system's reason for refusing a call, as a part of a sentence: "no such file or directory".
  package var reason: String {
    let text = description
    guard let first = text.first else { return "system error \(rawValue)" }
    // "I/O error", as musl has it, is no sentence's beginning.
    guard text.dropFirst().first?.isLowercase == true else { return text }
    return first.lowercased() + text.dropFirst()
  }

  /// Whether nothing has that name.
  package var isAbsence: Bool { self == .noSuchFileOrDirectory || self == .notDirectory }

  /// Whether there is no room: the disk is full, or the user's share of it is used up.
  package var isDiskFull: Bool { self == .noSpace || self == .diskQuotaExceeded }
}

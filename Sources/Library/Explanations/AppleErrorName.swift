/// The name of an Apple error, in any of the forms that users type or copy: `MBErrorDomain/205`, `ErrorCode 207`,
/// `OSStatus -25300`, `Error Domain=NSOSStatusErrorDomain Code=-25300`, `Code=-25300`.
package struct AppleErrorName: Sendable, Hashable {
  /// A group of Apple errors whose numbers are unique in it.
  package enum Domain: Sendable, Hashable, CaseIterable {
    /// Keychain statuses (`OSStatus`). Their numbers are negative.
    case keychain
    /// Errors of the backup service (`MBErrorDomain`). Their numbers are positive.
    case backup

    /// The pages of the domain.
    package var pages: [Explanation] {
      switch self {
      case .keychain: Explanation.keychainStatuses
      case .backup: Explanation.backupErrors
      }
    }

    /// The words that name the domain, in lower case.
    fileprivate var keywords: [String] {
      switch self {
      case .keychain: ["osstatus"]
      case .backup: ["mberrordomain", "errorcode"]
      }
    }
  }

  /// The domain of the number.
  package let domain: Domain
  /// The number, with the sign of its domain.
  package let number: Int32

  /// Parses a name.
  ///
  /// A number without a domain is a keychain status if it has a minus sign or at least five digits. Otherwise, it is an
  /// error of the backup service if there is a page about such an error.
  ///
  /// - Parameter text: The text that the user typed.
  /// - Returns: `nil` if the text does not name an error.
  package init?(parsing text: String) {
    var characters = text.lowercased().drop { $0 == " " }
    while let last = characters.last, " .)".contains(last) { characters.removeLast() }
    if characters.hasPrefix("code=") { characters.removeFirst("code=".count) }
    let digits = String(characters.reversed().prefix { $0.isASCII && $0.isNumber }.reversed())
    guard let magnitude = Int32(digits) else { return nil }
    if let namedDomain = Domain.allCases.first(where: { $0.keywords.contains { characters.contains($0) } }) {
      domain = namedDomain
    } else if characters == "-" + digits || characters == digits && digits.count >= 5 {
      domain = .keychain
    } else if characters == digits, Explanation.backupErrors.contains(where: { $0.number == magnitude }) {
      domain = .backup
    } else {
      return nil
    }
    number = domain == .keychain ? -magnitude : magnitude
  }

  /// The page of the error; `nil` if there is none.
  package var page: Explanation? { domain.pages.first { $0.number == number } }

  /// The page of the domain whose number is nearest.
  package var nearest: Explanation? {
    domain.pages.min { distance(to: $0) < distance(to: $1) }
  }

  private func distance(to page: Explanation) -> Int { abs(Int(page.number ?? 0) - Int(number)) }
}

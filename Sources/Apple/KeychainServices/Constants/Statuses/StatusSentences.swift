/// What `SecCopyErrorMessageString` says of statuses that no call of this keychain gives, in this project's words.
enum StatusSentences {
  static func sentence(of status: OSStatus) -> String? {
    tables.lazy.compactMap { $0[status] }.first
  }

  /// A table for each file of constants.
  static let tables: [[OSStatus: String]] = [keychains, trust, modules, attributes, policies]
}

import ArchivedKeychain
import CommandSession
import KeychainFormats
import Migration
import Reports

/// What a report of a backup says of the items that no backup holds: once in its text, once in its document.
enum UnseenNote {
  static func lines(style: TextStyle) -> [String] { WordWrap.lines(of: UnseenItems.sentence, columns: style.width) }
}

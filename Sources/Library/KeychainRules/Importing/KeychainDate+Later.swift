package import Basics
import KeychainFormats

extension KeychainDate {
  /// Returns the date one millisecond later. Apple's code adds this interval to the date of a replaced row.
  package func advancedByTieBreak() -> KeychainDate {
    adding(seconds: ImportConflict.tieBreakInterval)
  }

  /// Returns this date, or one just after `other` if this date is not later.
  package func later(than other: KeychainDate?) -> KeychainDate {
    guard let other, self <= other else { return self }
    return other.advancedByTieBreak()
  }
}

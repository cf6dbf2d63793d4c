package import Basics
import KeychainFormats

extension KeychainDate {
  /// The smallest later date that Apple's code gives to what replaces something.
  package func makingYounger() -> KeychainDate {
    adding(seconds: ImportConflict.makeYoungerSeconds)
  }

  /// This date, or one just after `other` where this is not later.
  package func later(than other: KeychainDate?) -> KeychainDate {
    guard let other, self <= other else { return self }
    return other.makingYounger()
  }
}

package import Basics
import KeychainFormats

/// Why a file could not be read as a keychain database. What happens to a single item is a `DatabaseItemFault` instead.
package struct KeychainDatabaseError: ExplainedError, Equatable {
  /// Why, for a program to switch on.
  package enum Code: String, Sendable {
    /// The bytes are no SQLite database.
    case unreadable
    /// A database, and none of a keychain.
    case unknownForm
    /// A file of class keys that does not have its form.
    case malformed
    /// Somebody else has it open.
    case busy
    /// It cannot be written to.
    case notWritable
    /// It can be read and is not changed: its schema, its keys or what it defines besides stand against it.
    case unchangeable
    /// An item with the same primary key is there.
    case duplicate
    /// Cut off, or its pages contradict each other.
    case damaged
    /// More or larger than a named limit accepts.
    case overLimit
    /// SQLite or the ciphers do not work here.
    case failed
    /// The system refused to read or write the file.
    case disk
    /// A change failed, and the database cannot be read afterwards, so it is unknown whether the change was made.
    case unknownOutcome
  }

  /// Why, for a program to switch on.
  package let code: Code
  /// The fact found, with its place where it has one. It quotes no value.
  package let reason: String
  /// Whether the change was already made when the error happened.
  package let stage: ChangeStage

  /// Creates an error.
  package init(_ code: Code, _ reason: String, stage: ChangeStage = .beforeCommit) {
    self.code = code
    self.reason = reason
    self.stage = stage
  }

  /// What is said of every error with the same code.
  package var meaning: ErrorMeaning {
    switch code {
    case .unreadable: .init(.refused, "it is not an SQLite database", advice: "check the path")
    case .unknownForm: .init(.refused, "it is not a keychain database", advice: "check the path")
    case .malformed:
      .init(
        .refused, "it is not a class key file",
        advice: "a JSON object that maps each class (6 to 12) to a key of 64 hexadecimal digits"
      )
    case .busy: .init(.busy, "the database is in use", advice: "shut down the Simulator")
    case .notWritable: .init(.failed, "the database cannot be written to", advice: "check its permissions")
    case .unchangeable: .init(.refused, "the database was not changed", advice: "a command that only reads it")
    case .duplicate:
      .init(.failed, "the database already has this item", advice: "use another name, or change the existing item")
    case .damaged: .init(.damaged, "the database is damaged", advice: "another copy of it, together with its -wal file")
    case .overLimit: .init(.refused, "the database is over a limit", advice: "don't trust this file")
    case .failed:
      .init(.failed, "the database cannot be read here", advice: "check the installation of SQLite's library")
    case .disk:
      .init(.failed, "the database cannot be read or written", advice: "free some space, or check the disk")
    case .unknownOutcome:
      .init(.failed, "the database may have been changed", advice: "check the disk, and then the database's items")
    }
  }
}

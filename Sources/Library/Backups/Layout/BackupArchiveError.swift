public import Basics
import KeychainFormats
package import SystemPackage

/// Why a backup could not be read or written.
public struct BackupArchiveError: ExplainedError, Equatable {
  /// What went wrong with the backup. The raw value is the identifier in machine-readable output.
  public enum Code: String, Sendable, CaseIterable {
    /// Nothing is at the place that was named.
    case notFound = "not-found"
    /// What is there ends properly, but isn't a backup.
    case notABackup = "not-a-backup"
    /// A backup, or a container, of a kind that this version doesn't read.
    case unsupported
    /// Of iOS 10.0 with a password: the records in its list of files are sealed with it, and are never rewritten.
    case sealedList = "sealed-list"
    /// Says that it has a password, and everything in it is in clear.
    case falseClaim = "false-claim"
    /// Says that it has no password, and was made under one.
    case passwordDenied = "password-denied"
    /// A decrypted copy of a backup with a password, which no device takes.
    case decryptedCopy = "decrypted-copy"
    /// Needs a file to be read from, and came as a stream.
    case notStreamable = "not-streamable"
    /// An entry, a link or a table that no real backup has.
    case hostile
    /// More or larger than a named limit accepts.
    case overLimit = "over-limit"
    /// The bytes end before the backup does.
    case truncated
    /// The bytes are not what was written.
    case damaged
    /// The device never finished writing it.
    case unfinished
    /// A part of a backup that has no manifest, and of which nothing says that its device finished it.
    case manifestMissing = "manifest-missing"
    /// A file that the manifest lists isn't there.
    case payloadMissing = "payload-missing"
    /// A whole backup in which no keychain was stored.
    case noKeychain = "no-keychain"
    /// The class key that protects a part of the backup isn't at hand.
    case keyUnavailable = "key-unavailable"
    /// Something wrote to it while it was read.
    case changed
    /// The system refused to read.
    case unreadable
    /// The system refused to write.
    case unwritable
    /// The target's file system is full.
    case noSpace = "no-space"
    /// A stream did not take all; what it took is not whole.
    case streamBroken = "stream-broken"
    /// A temporary file cannot be made, or the file system that it lies on is full.
    case noTemporarySpace = "no-temporary-space"
    /// The library that packs and unpacks a backup in one file cannot be used.
    case libraryMissing = "library-missing"
    /// Something stands where the backup should go.
    case occupied
    /// Another process reads or changes the backup.
    case busy
    /// Whoever asked for it has stopped it.
    case interrupted
  }

  /// What went wrong, for a program to switch on.
  public let code: Code
  /// The fact found, with the file it is in. Names out of the backup are made harmless.
  public let reason: String

  /// Creates an error of a code and a reason.
  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// Whether the system had no descriptor or memory left. No file is at fault then, and the whole work ends.
  package private(set) var isShortage = false

  /// Creates an error for a call that the system refused.
  ///
  /// - Parameter error: The system's error, which `reason` names.
  package init(_ code: Code, _ reason: String, of error: Errno) {
    self.init(error.isShortage ? .unreadable : code, reason)
    isShortage = error.isShortage
  }

  /// One sentence and one advice for each code.
  public var meaning: ErrorMeaning {
    switch code {
    case .notFound: .init(.notFound, "there is no such backup", advice: "check the path")
    case .notABackup: .init(.refused, "this is not a backup", advice: "the folder named after the device's identifier")
    case .unsupported:
      .init(
        .refused, "this kind of backup is not supported",
        advice: "make a new backup with a current Finder, iTunes or idevicebackup2")
    case .sealedList:
      .init(
        .refused, "the records in its manifest are encrypted with its password, as iOS 10.0 wrote them",
        advice: "export its contents, or update the device to iOS 10.1 or later and back it up again")
    case .falseClaim:
      .init(
        .refused, "the backup says that it is encrypted, but it is not",
        advice: "don't trust this copy; back up the device again")
    case .passwordDenied:
      .init(
        .refused, "the backup says that it has no password, but it was made with one",
        advice: "don't trust this copy; use the source device's own copy")
    case .decryptedCopy:
      .init(.refused, "this is a decrypted copy, which can only be read", advice: "the backup that it was made from")
    case .notStreamable:
      .init(
        .refused, "this kind of backup cannot be read from a stream",
        advice: "save it in a file, and give the path of that file")
    case .hostile: .init(.refused, "refused to read the backup", advice: "don't trust this file; nothing was written")
    case .overLimit: .init(.refused, "refused to read the backup", advice: "don't trust this file")
    case .truncated:
      .init(.damaged, "the backup is cut short", advice: "another copy; verify shows whether a copy is complete")
    case .damaged: .init(.damaged, "the backup is damaged", advice: "use another copy")
    case .unfinished:
      .init(
        .damaged, "the backup was never finished",
        advice: "export its contents, or back up the device again and let it finish")
    case .manifestMissing:
      .init(
        .damaged, "this is an unfinished backup",
        advice: "another copy, or back up the device again and let it finish")
    case .payloadMissing: .init(.damaged, "the backup is not complete", advice: "use another copy")
    case .noKeychain:
      .init(
        .refused, "the backup contains no keychain",
        advice: "make a new backup; if it has a password, its keychain also works on other devices")
    case .keyUnavailable:
      .init(
        .wrongPassword,
        "part of the backup cannot be decrypted", advice: "the password set when the backup was made")
    case .changed:
      .init(
        .failed, "the backup changed while it was being read",
        advice: "run it again when no other program writes to the backup; nothing was changed")
    case .unreadable where isShortage:
      .init(
        .failed, "could not read the backup", advice: "end other programs, or raise the limit of the shell (ulimit)")
    case .unreadable: .init(.failed, "could not read the backup", advice: "check the permissions and the disk")
    case .unwritable:
      .init(
        .failed, "could not write the backup",
        advice: "check the permissions and the disk; no partial file was left")
    case .noSpace:
      .init(.failed, "could not write the backup", advice: "free space and run it again; no partial file was left")
    case .noTemporarySpace: .init(.failed, "could not read the backup", advice: .keepInMemory)
    case .libraryMissing:
      .init(
        .failed, "libarchive, which packs and unpacks a backup in one file, cannot be used",
        advice:
          "install libarchive 3.5 or newer (libarchive13 on Debian and Ubuntu), or use a backup in a folder")
    case .busy: .init(.busy, "the backup is in use", advice: .waitForOtherProcess)
    case .streamBroken: .init(.failed, "could not write the backup", advice: "run it again: the output is incomplete")
    case .occupied: .init(.usage, "could not write the backup", advice: "use another name, or allow it to be replaced")
    case .interrupted: .init(.failed, "stopped", advice: "run it again; nothing was changed")
    }
  }
}

extension BackupArchiveError {
  /// An error of a lower layer, met in `part` of a backup: "Manifest.plist", "the keychain file".
  package init(_ error: any ExplainedError, in part: String) {
    let code: Code =
      switch error.category {
      case .wrongPassword: .keyUnavailable
      case .refused:
        switch (error as? FormatError)?.code {
        case .overLimit: .overLimit
        case .forbidden: .hostile
        default: .unsupported
        }
      // A keybag says how long it is; what ends early in other formats is as likely changed as cut.
      case .damaged: (error as? FormatError)?.isKeybagCut == true ? .truncated : .damaged
      default: .unreadable
      }
    self.init(code, "\(part): \(error.reason)")
  }
}

extension FormatError {
  fileprivate var isKeybagCut: Bool { format == .keybag && code == .truncated }
}

/// Runs `body` and gives the error of a lower layer as this module's, met in `part` of a backup.
package func explained<Value: ~Copyable, Failure: ExplainedError>(
  _ part: String, _ body: () throws(Failure) -> Value
) throws(BackupArchiveError) -> Value {
  do throws(Failure) {
    return try body()
  } catch {
    throw BackupArchiveError(error, in: part)
  }
}

/// Why bytes could not be put where they should go.
package enum WriteFailure: Error {
  case system(Errno)
  case library(String)
  /// Something stands there that may not be replaced.
  case occupied(String)
  /// What should have been written could not be had.
  case source(BackupArchiveError)
}

/// Runs `body` for what is to be written.
package func obtaining<Value: ~Copyable>(
  _ body: () throws(BackupArchiveError) -> Value
) throws(WriteFailure) -> Value {
  do throws(BackupArchiveError) {
    return try body()
  } catch {
    throw .source(error)
  }
}

/// Runs a call of the system on what stands at `path` and says of an error which path it is.
package func opened<Value: ~Copyable>(
  _ path: String, _ body: () throws(Errno) -> Value
) throws(BackupArchiveError) -> Value {
  do throws(Errno) {
    return try body()
  } catch {
    throw BackupArchiveError(
      error.isAbsence ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)", of: error)
  }
}

/// An error of those who go through a backup's files: reading them fails, or what is done with them does.
package protocol WalkFailure: Error {
  init(reading error: BackupArchiveError)
}

extension BackupArchiveError: WalkFailure {
  package init(reading error: BackupArchiveError) { self = error }
}

extension WriteFailure: WalkFailure {
  package init(reading error: BackupArchiveError) { self = .source(error) }
}

/// Runs the reading half of a walk.
package func reading<Value: ~Copyable, Failure: WalkFailure>(
  as type: Failure.Type, _ body: () throws(BackupArchiveError) -> Value
) throws(Failure) -> Value {
  do throws(BackupArchiveError) {
    return try body()
  } catch {
    throw Failure(reading: error)
  }
}

/// A name from outside as an error's sentence shows it.
package func quoted(_ name: String) -> String { HostileText.quoted(name) }

import Backups
public import Basics
import KeychainFormats
import Keychains
import VirtualDevice

/// Why a backup, a plan or a restore could not be made as a whole. What happens to a single item is a `Reason` instead.
public struct MigrationError: ExplainedError {
  /// Why it could not be made.
  public enum Code: String, Sendable {
    /// A part below failed; its own words are carried on.
    case underlying
    /// Rows of the device cannot be read until it is unlocked.
    case deviceLocked
    /// The archive or the target is no longer what the plan was made for.
    case stalePlan
    /// The plan was not made for `.restoring`, and does not hold what it would write.
    case planToLookAt
    /// A file is no saved plan, or has what no plan has.
    case malformedPlan
    /// A saved plan is of a format that is not read.
    case otherPlanFormat
    /// A file is not a list of expectations, has unsupported content, or requires more work than the limit allows.
    case malformedExpectations
    /// The device's system does not write this kind of backup.
    case unsupportedSystem
    /// No item has the place that was asked about.
    case noSuchItem
  }

  /// Why, for a program to switch on.
  public let code: Code
  /// What is said of every error of its kind; of `.underlying` what the part below says.
  public let meaning: ErrorMeaning
  /// The fact found, with its place.
  public let reason: String
  /// The error of a part below that this one carries on.
  package let underlying: (any ExplainedError)?
  /// The name of the device that it is about, where several took part.
  public private(set) var device: String?

  /// That of the error below; what has none stands before the commit.
  public var stage: ChangeStage { underlying?.stage ?? .beforeCommit }

  /// Whether it was told to stop, and took back what it had done.
  package var isCancelled: Bool {
    let lowest = (underlying as? VirtualDeviceError)?.underlying ?? underlying
    return (lowest as? KeychainStoreError)?.code == .cancelled
  }

  init(_ code: Code, _ category: ErrorCategory, _ summary: String, reason: String, advice: Remedy) {
    self.code = code
    meaning = ErrorMeaning(category, summary, advice: advice)
    self.reason = reason
    underlying = nil
  }

  /// Carries on what a part below says.
  package init(_ error: some ExplainedError) {
    code = .underlying
    meaning = error.meaning
    reason = error.reason
    underlying = error
  }

  private init(_ error: some ExplainedError, meaning: ErrorMeaning) {
    code = .underlying
    self.meaning = meaning
    reason = error.reason
    underlying = error
  }

  /// Why a backup could not be made. What it keeps outside of memory meanwhile can be kept nowhere else.
  static func making(_ error: BackupArchiveError) -> MigrationError {
    guard error.code == .noTemporarySpace else { return MigrationError(error) }
    return MigrationError(
      error,
      meaning: ErrorMeaning(
        .failed, "a temporary file cannot be written",
        advice: "set TMPDIR to a folder with free space"))
  }

  /// - Parameters:
  ///   - lockedItems: Of this protection class, the one that most locked items have.
  ///   - others: Locked items of other classes.
  static func deviceLocked(
    lockedItems: Int, protection: ProtectionClass, others: Int, device: String
  ) -> MigrationError {
    let rest = others == 0 ? "" : ", and \(others) more \(others == 1 ? "has another class" : "have other classes")"
    let reason =
      switch (lockedItems, others) {
      case (0, _): "the keys of items in the class \"\(protection.phrase)\" are not in memory"
      case (1, 0): "1 item is in the class \"\(protection.phrase)\"; its key is not in memory"
      case (1, _): "1 item is in the class \"\(protection.phrase)\"\(rest); their keys are not in memory"
      default: "\(lockedItems) items are in the class \"\(protection.phrase)\"\(rest); their keys are not in memory"
      }
    return MigrationError(
      .deviceLocked, .locked, "\(device) is locked, so its keychain cannot be read", reason: reason,
      advice: .unlock(device: device))
  }

  /// The same, about one of several devices.
  func about(_ device: String) -> MigrationError {
    var error = self
    error.device = device
    return error
  }

  /// - Parameters:
  ///   - name: What was asked about: an archive or a device.
  ///   - count: How many items it has.
  static func noSuchItem(_ index: Int, in name: String, count: Int) -> MigrationError {
    MigrationError(
      .noSuchItem, .usage, "there is no item \(Amounts.grouped(index))",
      reason: "\(name) has \(Amounts.count(count, "item")), counted from 0", advice: .listItems)
  }

  static var planToLookAt: MigrationError {
    MigrationError(
      .planToLookAt, .usage, "this plan was made for display only",
      reason: "it does not contain the items that it would write",
      advice: "a plan that is made for .restoring")
  }

  package static func stalePlan(_ reason: String) -> MigrationError {
    MigrationError(
      .stalePlan, .stalePlan, "the plan no longer matches", reason: reason, advice: "plan again")
  }

  static func malformedPlan(_ reason: String) -> MigrationError {
    MigrationError(.malformedPlan, .refused, "the file is not a saved plan", reason: reason, advice: "plan again")
  }
}

/// Turns an error of a part below into one of this layer.
package func reporting<Value: ~Copyable, Failure: ExplainedError>(
  _ body: () throws(Failure) -> Value
) throws(MigrationError) -> Value {
  do throws(Failure) { return try body() } catch { throw MigrationError(error) }
}

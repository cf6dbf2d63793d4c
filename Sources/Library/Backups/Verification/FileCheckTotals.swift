import Basics

/// The counts of files, collected while the file list and then the payloads are read.
struct FileCheckTotals {
  var listed = 0
  /// The number of files that are complete: `stored` plus `emptyWithoutPayload`.
  var present = 0
  /// The number of files with a payload.
  var stored = 0
  /// The number of files that are empty, so that they need no payload, and have none.
  var emptyWithoutPayload = 0
  /// Whether the keychain file is listed but not stored. Its content has its own check.
  var isKeychainMissing = false
  /// The number of files that match their recorded digest.
  var withMatchingDigest = 0
  /// The number of files without a recorded digest, in which changes cannot be detected.
  var withoutDigest = 0
  /// The number of encrypted files with valid padding, without the keychain file.
  var withValidPadding = 0
  /// Whether the keychain file was read. Its padding has its own check.
  var isKeychainRead = false
  /// The number of files whose size differs from the recorded one.
  var sizeMismatches = 0
  /// Notes about the first files whose size differs, with both sizes.
  var sizeMismatchNotes: [String] = []
  /// The number of files whose class key requires an unavailable device key.
  var withoutKey = 0
  var readByteCount: Int64 = 0
  /// The faults of payloads.
  var faults = SortedFaults(limit: BackupVerification.maximumFaultCount)

  mutating func addSizeMismatch(of name: String, recorded: Int64, found: Int64) {
    sizeMismatches += 1
    guard sizeMismatchNotes.count < BackupVerification.maximumFaultCount else { return }
    sizeMismatchNotes.append(
      "\(name) has \(HumanReadable.grouped(found)) bytes, but the manifest records \(HumanReadable.grouped(recorded))")
  }
}

/// The first faults by file name. The result does not depend on the order of additions, so that a directory and a
/// container file with the same backup have equal reports.
struct SortedFaults {
  private let limit: Int
  private var faults: [BackupVerification.Fault] = []
  /// The number of added faults, including those above the limit.
  private(set) var count = 0

  /// Creates an empty list.
  ///
  /// - Parameter limit: The maximum number of faults.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ fault: BackupVerification.Fault) {
    count += 1
    faults.append(fault)
    // Sorting only after the count has exceeded twice the limit avoids a sort after each addition.
    if faults.count > 2 * limit { faults = firstFaults }
  }

  /// The sorted faults, up to the limit.
  var firstFaults: [BackupVerification.Fault] {
    Array(
      faults.sorted { ($0.file ?? "", $0.kind.rawValue) < ($1.file ?? "", $1.kind.rawValue) }.prefix(limit))
  }
}

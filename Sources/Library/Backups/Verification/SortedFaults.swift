/// The first faults by their files' names, whatever order they are found in: a directory and one file that hold the
/// same backup give their payloads in different orders, and get the same report.
struct SortedFaults {
  private let limit: Int
  private var kept: [BackupVerification.Fault] = []
  private(set) var count = 0

  /// - Parameter limit: The most that are wanted.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ fault: BackupVerification.Fault) {
    count += 1
    kept.append(fault)
    // Sorted once for as many as are wanted, and never more than twice as many at hand.
    if kept.count > 2 * limit { kept = first }
  }

  /// Sorted, no more than are wanted.
  var first: [BackupVerification.Fault] {
    Array(
      kept.sorted { ($0.file ?? "", $0.kind.rawValue) < ($1.file ?? "", $1.kind.rawValue) }.prefix(limit))
  }
}

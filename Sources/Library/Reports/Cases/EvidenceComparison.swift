import KeyhaulKit

/// A comparison of the file-system metadata of a backup's files before and after the examination.
package struct EvidenceComparison: Sendable, Equatable {
  /// The number of files, folders and other entries before the examination.
  package let entryCount: Int
  /// The total size of the files before the examination, in bytes.
  package let byteCount: Int64
  /// The paths of entries that changed, appeared or disappeared; at most `maximumPathCount`.
  package let changedPaths: [String]
  /// The number of entries that changed, appeared or disappeared.
  package let changedCount: Int
  /// The reason why the comparison is incomplete; `nil` if everything was compared.
  package let incompletenessReason: String?

  /// The maximum number of paths in `changedPaths`.
  package static let maximumPathCount = 100

  package init(
    entryCount: Int, byteCount: Int64, changedPaths: [String], changedCount: Int, incompletenessReason: String?
  ) {
    self.entryCount = entryCount
    self.byteCount = byteCount
    self.changedPaths = changedPaths
    self.changedCount = changedCount
    self.incompletenessReason = incompletenessReason
  }

  /// Whether everything was compared, and nothing differs.
  package var isUnchanged: Bool { changedCount == 0 && incompletenessReason == nil }

  /// The result of the comparison, in one or two sentences.
  package var sentence: String {
    if changedCount > 0 {
      // The two numbers need not match, because entries that appeared are not in the count before.
      return
        "\(Self.countText(changedCount)) changed, appeared or disappeared during the examination (\(countText) before). "
        + "Another program may have changed \(changedCount == 1 ? "it" : "them")."
    }
    if let incompletenessReason { return "Not everything was compared: \(incompletenessReason)." }
    return entryCount == 1
      ? "The only entry did not change during the examination." : "None of \(countText) changed during the examination."
  }

  /// The number of entries before the examination: "1 entry" or "12 files and folders".
  package var countText: String { Self.countText(entryCount) }

  private static func countText(_ count: Int) -> String {
    HumanReadable.count(count, "entry", plural: "files and folders")
  }
}

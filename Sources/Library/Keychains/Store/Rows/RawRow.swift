/// A row as it was read: its columns' facts and the sealed item.
struct RawRow {
  let summary: RowSummary
  /// The content of `data`, `nil` where it is not a blob.
  let sealedItem: [UInt8]?
}

import KeychainFormats

/// An error in decrypting an item: a fault of the item, or a failure that the item did not cause.
enum DatabaseItemError: Error {
  case fault(DatabaseItemFault)
  case failed(DataProtectionError)

  init(_ verdict: DatabaseItemVerdict, _ step: DatabaseItemFault.Step, _ reason: String) {
    self = .fault(DatabaseItemFault(verdict, step, reason))
  }
}

/// Calls a closure and reports a format error as an error of the item in this step.
func convertingFormatError<Result>(
  at step: DatabaseItemFault.Step, _ body: () throws(FormatError) -> Result
) throws(DatabaseItemError) -> Result {
  do throws(FormatError) { return try body() } catch { throw .fault(DatabaseItemFault(error, step)) }
}

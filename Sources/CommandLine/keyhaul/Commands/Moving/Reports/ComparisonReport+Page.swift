import KeyhaulKit
import Reports

extension ComparisonReport {
  /// The four restores and the checklist as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: What the person types for the source; `nil` where it came from a stream.
  ///   - targetArgument: The same for the target; `nil` where there is none.
  func page(from sourceArgument: String?, to targetArgument: String?) -> ComparisonPage {
    ComparisonPage(
      comparison, of: report.document, apps: report.source.apps, maker: report.source.maker,
      sourceArgument: sourceArgument,
      targetArgument: targetArgument, program: ProgramVersion.signature)
  }
}

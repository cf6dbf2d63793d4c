import KeyhaulKit
import Reports

extension PlanReport {
  /// The plan as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: What the person types for the source; `nil` where it came from a stream.
  ///   - targetArgument: The same for the target; `nil` where there is none.
  func page(from sourceArgument: String?, to targetArgument: String?) -> PlanPage {
    PlanPage(
      plan, as: document, apps: source.apps, maker: source.maker, sourceArgument: sourceArgument,
      targetArgument: targetArgument,
      program: ProgramVersion.signature)
  }
}

import Migration
import MigrationReports

extension PlanReport {
  /// The plan as one HTML file.
  var page: PlanPage {
    PlanPage(
      plan, as: document, apps: source.apps, sourceArgument: Keyhaul.argument(named: source.name),
      program: Keyhaul.signature)
  }
}

extension Keyhaul {
  /// Who makes a page.
  static var signature: String { "keyhaul \(version)" }

  /// What the person types for an archive that messages call so; `nil` where it came from a stream.
  static func argument(named name: String) -> String? { name == Session.NamedArchive.standardInput ? nil : name }
}

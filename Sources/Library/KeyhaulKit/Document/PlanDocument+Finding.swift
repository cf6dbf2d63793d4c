public import Backups
package import Basics
import KeychainFormats

extension PlanDocument {
  /// A part of the archive that is not as a device leaves it.
  public struct Finding: Sendable, Equatable {
    /// What it is, for a program to switch on (`ArchiveFinding.Kind`).
    public var id: String
    /// The file that it is in.
    public var place: String
    /// The fact found.
    public var detail: String
    /// Whether something of the archive cannot be had for it.
    public var isLoss: Bool
    /// Whether a restore takes an archive with it.
    public var isRestorable: Bool

    /// Creates what the document says of a finding.
    public init(_ finding: ArchiveFinding) {
      id = finding.kind.rawValue
      place = finding.place
      detail = finding.fact
      isLoss = finding.isLoss
      isRestorable = !finding.forbids(.restoring)
    }
  }
}

extension PlanDocument.Finding {
  /// The same to show to others: what was found may be told with a name out of the archive.
  package var redacted: PlanDocument.Finding {
    var shown = self
    shown.detail = id
    return shown
  }

  package var json: JSONValue {
    [
      "id": .string(id), "place": .string(place), "detail": .string(detail), "lost": .boolean(isLoss),
      "restorable": .boolean(isRestorable),
    ]
  }

  init(_ node: JSONNode) throws(JSONNode.Fault) {
    id = try node.member("id").string()
    place = try node.member("place").string()
    detail = try node.member("detail").string()
    isLoss = try node.member("lost").boolean()
    isRestorable = try node.member("restorable").boolean()
  }
}

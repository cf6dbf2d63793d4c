import KeyhaulKit
import Reports

extension DifferenceReport {
  /// The comparison as one HTML file.
  var page: DifferencePage {
    DifferencePage(from: Self.side(first), to: Self.side(second), difference, program: ProgramVersion.signature)
  }

  private static func side(_ side: ComparisonSide) -> DifferencePage.Side {
    DifferencePage.Side(
      kind: side.kind == .archive ? .archive : .device, name: side.name, argument: side.argument,
      deviceName: side.deviceName, itemCount: side.items.count, hasKeychain: side.hasKeychain,
      leftOut: side.leftOut.map { .init($0.identity, because: $0.reason) })
  }
}

package import KeyhaulKit

/// The report of `plan` without `--to` (format `migration-futures/1`): the losses on a new device, and on the erased
/// source device.
package struct OutlookReport: Report {
  package let summary: OutlookSummary

  package init(summary: OutlookSummary) { self.summary = summary }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    OutlookText(summary, showsAll: showsAll).lines(style: style)
  }

  package var json: JSONValue { OutlookDocument(summary).json }

  /// Returns the outlook as one HTML file.
  ///
  /// - Parameter program: The name and version that the page states.
  package func page(program: String) -> OutlookPage { OutlookPage(summary, program: program) }
}

package import KeyhaulKit

/// A case report as one HTML file, with the same frame as all other pages.
package struct CasePage: HTMLPage {
  private let report: CaseReport
  private let signature: String

  /// Creates the page of a case report.
  ///
  /// - Parameters:
  ///   - report: The case report.
  ///   - signature: The program's name and version, for the end of the page.
  package init(_ report: CaseReport, program signature: String) {
    self.report = report
    self.signature = signature
  }

  /// The maximum number of findings that the page lists for each backup. The JSON report has all of them.
  package static let maximumFindingCount = 100
  /// The maximum number of Unicode scalars in a sentence that may contain names from a backup.
  private static let maximumSentenceLength = 600

  package func html() throws(DataProtectionError) -> String {
    let privacyNote =
      "This page names devices and files. It contains no passwords and no secrets of items. Text under \"What the backup "
      + "says\" and in findings comes from the backup, and anyone who could change the backup could have written it."
    let title = "Case \(HTMLWriter.shortened(report.name))"
    let frame = ReportPage(title: title, program: signature, privacyNote: privacyNote)
    return try frame.html { page in
      writeHeading(to: &page)
      for (index, backup) in report.backups.enumerated() { write(backup, number: index + 1, to: &page) }
      page.newLine()
      page.element("section") { page in
        page.element("h2", "Whether anything was written to the backups")
        page.element("p", report.changeSentence)
        page.element("p", CaseReport.changeCheckMethod)
      }
      page.newLine()
      page.element("section") { page in
        page.element("h2", "Device keys")
        page.element(
          "p",
          "Some items can be decrypted only with the key of the device that made the backup. If that device is a "
            + "virtual device in the device folder, Keyhaul used its key, even if the command does not name it.")
      }
    }
  }

  private func writeHeading(to page: inout HTMLWriter) {
    page.element("header") { page in
      page.element("h1") { page in
        page.text("Case ")
        page.name(report.name)
      }
      page.element("p", ["class": "verdict"], report.verdict)
      Self.writeTable(
        [
          ("Examiner", report.examiner), ("Program", report.program),
          ("Folder", report.folder),
          ("Command", report.command.map { ShellQuoting.quote($0) }.joined(separator: " ")),
          ("Started", Timestamp.text(of: report.started)), ("Ended", Timestamp.text(of: report.ended)),
        ], to: &page)
    }
  }

  private func write(_ backup: CaseReport.ExaminedBackup, number: Int, to page: inout HTMLWriter) {
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.text("\(number). ")
        page.name(backup.path)
      }
      page.element("p") { page in
        page.element("strong", backup.result.rawValue)
        page.text(" (exit code \(backup.code)): \(backup.headline).")
      }
      if let reason = backup.reason { Self.writeSentence("Reason: \(reason)", to: &page) }
      writeExaminedFiles(of: backup, to: &page)
      if !backup.claims.isEmpty {
        page.element("h3", "What the backup says about itself")
        Self.writeTable(backup.claims.map { (Self.claimTitles[$0.name] ?? $0.name, $0.value) }, to: &page)
      }
      writeChecks(of: backup, to: &page)
      writeFindings(of: backup, to: &page)
    }
  }

  private func writeExaminedFiles(of backup: CaseReport.ExaminedBackup, to page: inout HTMLWriter) {
    page.element("h3", "What was examined")
    Self.writeTable(
      [
        ("Path", backup.path),
        ("Size", "\(backup.files.countText), \(HumanReadable.bytes(backup.files.byteCount))"),
        ("Digest", backup.digest ?? "not computed: it could not be opened"),
        ("Seal", Self.sealText(backup)),
        ("Files before and after", backup.files.sentence),
      ], to: &page)
    if backup.digest != nil { page.element("p", CaseReport.digestMethod) }
    for path in backup.files.changedPaths { Self.writeSentence("Changed: \(path)", to: &page) }
  }

  /// The titles of a backup's claims, by their names in the JSON document.
  private static let claimTitles = [
    "device_name": "Name of the device", "udid": "UDID", "made": "Made", "encrypted": "Has a password",
    "state": "State", "product_type": "Model", "ios": "iOS", "build": "Build", "serial_number": "Serial number",
  ]

  /// Returns the state of the seal and its code.
  ///
  /// The code is the last line of `Keyhaul.seal`. It covers the lines above, which contain the SHA-256 of every file.
  private static func sealText(_ backup: CaseReport.ExaminedBackup) -> String {
    guard let code = backup.sealCode else {
      return backup.sealState == "broken" ? "broken: it cannot be read" : "none"
    }
    let state =
      switch backup.sealState {
      case "intact"?: "intact: every file was compared with it"
      case "broken"?: "broken: the backup differs from what was sealed"
      case nil, _?: "present, not compared with every file"
      }
    return "\(state); code \(code)"
  }

  private func writeChecks(of backup: CaseReport.ExaminedBackup, to page: inout HTMLWriter) {
    let document = backup.document
    let checks = (document?["checks"]?.arrayValue ?? []).map { check in
      (
        state: check["ok"]?.booleanValue == true ? "ok" : "FAIL", name: Self.text(check["id"]),
        detail: Self.text(check["detail"])
      )
    }
    let unchecked = (document?["unchecked"]?.arrayValue ?? []).map { check in
      (state: "not checked", name: Self.text(check["id"]), detail: Self.text(check["detail"]))
    }
    guard !(checks + unchecked).isEmpty else { return }
    page.element("h3", "Checks")
    page.element("table", ["class": "plain"]) { page in
      page.element("tbody") { page in
        for (state, name, detail) in checks + unchecked {
          page.element("tr") { page in
            page.element("th", ["scope": "row"], name)
            page.element("td", state)
            page.element("td", HTMLWriter.shortened(detail, to: Self.maximumSentenceLength))
          }
        }
      }
    }
  }

  private func writeFindings(of backup: CaseReport.ExaminedBackup, to page: inout HTMLWriter) {
    let document = backup.document
    let faults = (document?["faults"]?.arrayValue ?? []) + (document?["findings"]?.arrayValue ?? [])
    // The same sentence may be a fault, a finding with another id, and a warning.
    var writtenSentences: Set<String> = []
    var lines: [String] = []
    for fault in faults {
      let sentence = VerificationDocument.sentence(of: fault)
      if writtenSentences.insert(sentence).inserted { lines.append("\(Self.text(fault["id"])): \(sentence)") }
    }
    for warning in backup.warnings where writtenSentences.insert(warning).inserted { lines.append(warning) }
    page.element("h3", "Findings")
    guard !lines.isEmpty else {
      page.element("p", document == nil ? "Not known: the backup could not be examined." : "None.")
      return
    }
    page.element("ul") { page in
      for line in lines.prefix(Self.maximumFindingCount) {
        page.element("li", HTMLWriter.shortened(line, to: Self.maximumSentenceLength))
      }
    }
    let omittedCount = lines.count - Self.maximumFindingCount
    if omittedCount > 0 { page.element("p", "\(HumanReadable.grouped(omittedCount)) more are in the JSON report.") }
  }

  private static func text(_ value: JSONValue?) -> String { value?.stringValue ?? "" }

  private static func writeSentence(_ text: String, to page: inout HTMLWriter) {
    page.element("p", HTMLWriter.shortened(text, to: maximumSentenceLength))
  }

  private static func writeTable(_ rows: [(name: String, value: String)], to page: inout HTMLWriter) {
    page.element("table", ["class": "plain"]) { page in
      page.element("tbody") { page in
        for row in rows {
          page.element("tr") { page in
            page.element("th", ["scope": "row"], row.name)
            page.element("td") { $0.element("bdi", HTMLWriter.shortened(row.value, to: maximumSentenceLength)) }
          }
        }
      }
    }
  }
}

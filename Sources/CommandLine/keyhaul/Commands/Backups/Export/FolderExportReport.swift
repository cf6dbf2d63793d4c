import KeyhaulKit

/// The report of `export --files`, or of its dry run.
struct FolderExportReport {
  private let plan: ExtractionPlan
  private let source: String
  private let folder: String

  init(_ plan: ExtractionPlan, from source: String, to folder: String) {
    self.plan = plan
    self.source = source
    self.folder = folder
  }

  /// The members of the document of an export and of its dry run.
  private var sharedFields: [(String, JSONValue)] {
    [
      ("format", "files-export/1"), ("source", .string(source)), ("folder", .string(folder)),
      ("chosen", .count(plan.rowCount)),
    ]
  }

  func announcePlan(in session: Session) throws(CommandError) {
    guard !session.isJSON else {
      return try session.writeDocument(
        .object(
          sharedFields + [
            ("files", .count(plan.fileCount)), ("directories", .count(plan.directoryCount)),
            ("stored_bytes", .integer(plan.byteCount)), ("dry_run", true),
          ]))
    }
    try session.announce(
      "Would write \(HumanReadable.count(plan.fileCount, "file")) of \(UntrustedText.escaped(source)) to "
        + "\(UntrustedText.escaped(folder)) (up to \(HumanReadable.bytes(plan.byteCount))).")
  }

  func announce(_ files: ExtractedFiles, in session: Session) throws(CommandError) {
    if session.isJSON { try session.writeDocument(document(files)) } else { try print(files, in: session) }
    warn(about: files, in: session)
  }

  private func print(_ files: ExtractedFiles, in session: Session) throws(CommandError) {
    let count = HumanReadable.count(files.fileCount, "file")
    let (source, folder) = (UntrustedText.escaped(source), UntrustedText.escaped(folder))
    let wasComplete = files.fileCount > 0 && files.keptCount >= files.fileCount && files.faultCount == 0
    guard !wasComplete else {
      return try session.announce(
        "Nothing to do: \(count) of \(source) \(files.fileCount == 1 ? "was" : "were") already in \(folder), and "
          + "\(files.fileCount == 1 ? "was" : "were") not compared again.")
    }
    let keptNote =
      files.keptCount > 0
      ? "; \(HumanReadable.grouped(files.keptCount)) of them were already there and were not compared again" : ""
    try session.announce(
      "Wrote \(count) of \(source) to \(folder) (\(HumanReadable.bytes(files.byteCount)))\(keptNote).")
    session.info("\(UntrustedText.escaped(files.manifestPath)) lists each file with its SHA-256.")
    session.info(digestText(files))
    for renamedFile in files.renamed { session.debug("  \(Self.text(of: renamedFile))") }
  }

  /// Describes a renamed file. A name that is not UTF-8 is escaped, so both names may look alike.
  private static func text(of renamedFile: ExtractedFiles.Renamed) -> String {
    let newName = UntrustedText.quoted(renamedFile.to)
    guard renamedFile.from != renamedFile.to else { return "\(newName), whose bytes are not UTF-8" }
    return "\(UntrustedText.quoted(renamedFile.from)) is now \(newName)"
  }

  /// Returns a line about how many files match their digests, and how many have no digest.
  private func digestText(_ files: ExtractedFiles) -> String {
    let matchingCount = files.digests[.matches, default: 0]
    let countWithoutDigest = files.digests[.none, default: 0]
    var parts = ["digests of \(HumanReadable.count(matchingCount, "file")) match"]
    if countWithoutDigest > 0 {
      let count = HumanReadable.count(countWithoutDigest, "file")
      let pronoun = countWithoutDigest == 1 ? "it" : "them"
      parts.append("\(count) without a digest: a change in \(pronoun) cannot be seen")
    }
    return "  " + parts.joined(separator: "; ")
  }

  private func warn(about files: ExtractedFiles, in session: Session) {
    warnAboutRenamedFiles(files, in: session)
    warnAboutOmissions(files, in: session)
    warnAboutChangedFiles(files, in: session)
    warnAboutUnreadableFiles(files, in: session)
  }

  private func warnAboutRenamedFiles(_ files: ExtractedFiles, in session: Session) {
    if files.renamedCount > 0 {
      session.warn(
        "\(HumanReadable.count(files.renamedCount, "name")) changed",
        why: "some file systems do not accept these names, or two names would collide; the first: "
          + (files.renamed.first.map(Self.text(of:)) ?? ""),
        try: "the export's manifest lists both names of each")
    }
  }

  private func warnAboutOmissions(_ files: ExtractedFiles, in session: Session) {
    if let count = files.omissions[.targetOutsideFolder] {
      session.warn(
        "\(HumanReadable.count(count, "link")) not written",
        why: "\(count == 1 ? "its target" : "their targets") may be outside \(folder)")
    }
    if let count = files.omissions[.unfinished] {
      session.warn(
        "\(HumanReadable.count(count, "row")) of the manifest skipped",
        why: "they list entries that the device had not finished")
    }
  }

  /// Warns about files whose bytes differ from the digest in the manifest or in the seal.
  private func warnAboutChangedFiles(_ files: ExtractedFiles, in session: Session) {
    if let first = files.differingFiles.first {
      session.warn(
        "\(HumanReadable.count(files.digests[.differs, default: 0], "file")) "
          + "\(files.digests[.differs] == 1 ? "is" : "are") not what was backed up",
        why: "the digest in the manifest or in the seal differs; the first: \(UntrustedText.quoted(first))",
        try: "another copy of the backup", ignoresQuiet: true)
    }
  }

  private func warnAboutUnreadableFiles(_ files: ExtractedFiles, in session: Session) {
    if let first = files.namedFaults.first {
      session.warn(
        "\(HumanReadable.count(files.faultCount, "file")) could not be read, and \(files.faultCount == 1 ? "was" : "were") "
          + "not written",
        why: "the first: \(UntrustedText.quoted(first.path)): \(first.error.reason)",
        try: "another copy of the backup; the export's manifest lists each file with its reason", ignoresQuiet: true)
    }
    for fault in files.namedFaults.dropFirst() {
      session.debug("  \(UntrustedText.quoted(fault.path)): \(UntrustedText.escaped(fault.error.reason))")
    }
  }

  private func document(_ files: ExtractedFiles) -> JSONValue {
    let digests = ExtractedFiles.DigestStatus.allCases.map {
      ($0.rawValue, JSONValue.count(files.digests[$0, default: 0]))
    }
    let omissions = ExtractedFiles.Omission.allCases.map {
      ($0.rawValue, JSONValue.count(files.omissions[$0, default: 0]))
    }
    let faults = KeyhaulError.Code.ofBackup.compactMap { code in
      files.faults[code].map { (code.rawValue, JSONValue.count($0)) }
    }
    let namedFaults = files.namedFaults.map { fault -> JSONValue in
      ["path": .string(fault.path), "fault": .string(fault.error.code.rawValue), "reason": .string(fault.error.reason)]
    }
    return .object(
      sharedFields + [
        ("files", .count(files.fileCount)), ("kept", .count(files.keptCount)),
        ("directories", .count(files.directoryCount)), ("links", .count(files.linkCount)),
        ("bytes", .integer(files.byteCount)), ("manifest", .string(files.manifestPath)), ("digests", .object(digests)),
        ("renamed", .count(files.renamedCount)),
        ("renamed_names", .array(files.renamed.map { ["from": .string($0.from), "to": .string($0.to)] })),
        ("left_out", .object(omissions)), ("faults", .object(faults)), ("named_faults", .array(namedFaults)),
        ("dry_run", false),
      ])
  }
}

import KeyhaulKit
import Reports

/// What an export is made as: what `--format` says, or else the ending of the file's name.
struct ExportForm {
  let format: OutputFormat

  /// - Throws: `.usage` for JSON into a file whose name promises another kind, and for secrets into one whose name
  ///   promises none.
  init(_ common: CommonOptions, output: String, reveals: Bool) throws(CommandFailure) {
    let promised = Self.format(ofFile: output)
    if common.json, let format = common.format, format != .json, output == "-" {
      throw .usage(
        "--json and -o - cannot be used together with --format \(format.rawValue)",
        why: "standard output would contain two results", try: "-o FILE, or leave --json out")
    }
    guard common.isJSON, common.format ?? .json == .json else {
      guard let format = common.format ?? promised ?? (reveals ? nil : .json) else {
        let endings = Export.formats.map { ".\(Self.ending(of: $0))" }
        throw .usage(
          "the name \(output) does not determine the format of the secrets",
          why: "it does not end in \(Amounts.list(endings, conjunction: "or"))",
          try: "--format \(Amounts.list(Export.formats.map(\.rawValue), conjunction: "or"))")
      }
      self.format = format
      return
    }
    guard promised ?? .json == .json else {
      throw .usage(
        "--json and -o \(output) cannot be used together",
        why: "the file would contain JSON, because --json means --format json",
        try: "leave --json out, or use a name that ends in .json")
    }
    format = .json
  }

  /// By its ending; a stream is JSON unless something else is said. `nil` if the ending says nothing.
  private static func format(ofFile name: String) -> OutputFormat? {
    if name == "-" { return .json }
    let name = name.lowercased()
    return Export.formats.first { name.hasSuffix(".\(ending(of: $0))") }
  }

  private static func ending(of format: OutputFormat) -> String {
    format == .genpPlist ? "genp.plist" : format.rawValue
  }

  /// What it is made as; `nil` for a document of every item.
  var exported: ItemExportForm? {
    switch format {
    case .csv: .passwords
    case .genpPlist: .genericPasswordPlist
    case .cxf: .credentialExchange(made: DeviceEnvironment.interruptible.clock.now())
    case .otpauth: .oneTimeSecrets
    case .pem: .certificatesAndKeys
    case .wifi: .wirelessNetworks
    default: nil
    }
  }

  /// The kinds whose secrets go into it.
  var kinds: [ItemKind] {
    switch format {
    case .csv, .cxf: [.genericPassword, .internetPassword]
    case .otpauth, .wifi, .genpPlist: [.genericPassword]
    case .pem: [.certificate, .key]
    default: []
    }
  }

  /// Whether it makes no sense without secrets.
  var isSecret: Bool { [.csv, .otpauth, .wifi, .genpPlist, .cxf].contains(format) }

  /// What it holds one of for each item.
  var noun: String {
    switch format {
    case .csv, .cxf: "password"
    case .genpPlist: "generic password"
    case .otpauth: "one-time password secret"
    case .wifi: "network"
    default: "item"
    }
  }

  /// Whether all of its kinds belong into it.
  var isOfWholeKinds: Bool { ![.otpauth, .wifi].contains(format) }

  /// What an item is that it holds none of, for it is no such thing: "of another kind".
  var otherNoun: String { [.otpauth, .wifi].contains(format) ? "no \(noun)" : "of another kind" }
  /// The same of several.
  var otherNouns: String { [.otpauth, .wifi].contains(format) ? "not \(noun)s" : "of other kinds" }

  /// What of it is secret: "13 passwords".
  var secretNoun: String { format == .pem ? "private key" : format == .wifi ? "password" : noun }
}

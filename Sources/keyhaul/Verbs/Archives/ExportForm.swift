import KeychainFormats

/// What an export is made as: what `--format` says, or else the ending of the file's name.
struct ExportForm {
  let format: OutputFormat

  /// - Throws: `.usage` for JSON into a file whose name promises another kind.
  init(_ common: CommonOptions, output: String) throws(CommandFailure) {
    let promised = Self.format(ofFile: output)
    guard common.isJSON else {
      format = common.format ?? promised
      return
    }
    guard promised == .json else {
      throw .usage(
        "--json and -o \(output) cannot go together", why: "the file would hold JSON: --json is --format json",
        try: "leave --json out, or a name in .json")
    }
    format = .json
  }

  private static func format(ofFile name: String) -> OutputFormat {
    let name = name.lowercased()
    if name.hasSuffix(".csv") { return .csv }
    return name.hasSuffix(".pem") ? .pem : .json
  }

  /// The kinds whose secrets go into it.
  var kinds: [ItemKind] {
    switch format {
    case .csv: [.genericPassword, .internetPassword]
    case .otpauth, .wifi: [.genericPassword]
    case .pem: [.certificate, .key]
    default: []
    }
  }

  /// Whether it makes no sense without secrets.
  var isSecret: Bool { [.csv, .otpauth, .wifi].contains(format) }

  /// What it holds one of for each item.
  var noun: String {
    switch format {
    case .csv: "password"
    case .otpauth: "one-time secret"
    case .wifi: "network"
    default: "item"
    }
  }

  /// What of it is secret: "13 passwords".
  var secretNoun: String { format == .pem ? "private key" : format == .wifi ? "password" : noun }
}

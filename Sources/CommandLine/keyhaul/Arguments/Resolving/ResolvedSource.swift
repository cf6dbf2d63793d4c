import KeyhaulKit

/// The device, backup or dump that an argument names. A command looks the argument up once, and then uses only this
/// value.
enum ResolvedSource {
  case device(ResolvedDevice)
  case backup(ResolvedBackup)
  /// Another tool's dump, or a keychain database.
  case dump(ResolvedDump)

  var isDevice: Bool { if case .device = self { true } else { false } }
  /// Whether the source is a keychain database.
  var isDatabase: Bool { if case .dump(let dump) = self { dump.isDatabase } else { false } }
  var isBackup: Bool { if case .backup = self { true } else { false } }

  /// The files that are read, which no output may replace.
  var files: [String] {
    switch self {
    case .device(let device): device.files
    case .backup(let backup): backup.files
    case .dump(let dump): dump.files
    }
  }

  /// The argument that names the source in suggested commands; `nil` if it is a stream, which cannot be read again.
  var suggestedArgument: String? {
    switch self {
    case .device(let device): device.suggestedArgument
    case .backup(let backup): backup.path == nil ? nil : backup.argument
    case .dump(let dump): dump.name
    }
  }
}

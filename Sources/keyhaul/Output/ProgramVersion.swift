/// Which keyhaul this is.
enum ProgramVersion {
  static let number = "0.1.0"
  /// Who makes a page.
  static var signature: String { "keyhaul \(number)" }
}

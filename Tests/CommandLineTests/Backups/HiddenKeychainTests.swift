import Foundation
import Testing

@testable import keyhaul

/// The keychain file is empty, or listed but missing. The items are then unknown, so no report may say that there were
/// none.
@Suite("Unreadable keychains")
struct HiddenKeychainTests {
  private static let keychain = "b/\(PhoneSandbox.keychainPath)"

  /// Returns a sandbox with a backup whose keychain cannot be read.
  ///
  /// - Parameter isPresent: Whether the keychain file exists but is empty. Otherwise, the file is missing.
  private func sandbox(isPresent: Bool) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    if isPresent {
      try sandbox.write([], to: Self.keychain)
    } else {
      try FileManager.default.removeItem(at: sandbox.home.appending(path: Self.keychain))
    }
    return sandbox
  }

  @Test(
    "Commands that need all items do not treat an unreadable keychain as empty", arguments: [true, false],
    [
      "export b -o z.json --reveal --password-file .bp", "export b -o z.csv --format csv --reveal --password-file .bp",
      "diff b b --password-file .bp --exit-code", "plan b --password-file .bp",
      "plan b --to new-phone --password-file .bp",
      "plan b --password-file .bp --format html -o z.html", "restore b --to new-phone --password-file .bp --yes",
      "why b --account anna --password-file .bp",
    ])
  func refused(isPresent: Bool, line: String) throws {
    let sandbox = try sandbox(isPresent: isPresent)
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == 13 && outcome.output == "", "\(outcome)")
    #expect(!FileManager.default.fileExists(atPath: sandbox.home.appending(path: "z.json").path))
    #expect(!FileManager.default.fileExists(atPath: sandbox.home.appending(path: "z.html").path))
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("Inspect shows an unreadable keychain and everything else in the backup", arguments: [true, false])
  func shown(isPresent: Bool) throws {
    let sandbox = try sandbox(isPresent: isPresent)
    let line = "inspect b --password-file .bp"
    let text = try sandbox.keyhaul(line)
    #expect(text.status == 3 && text.output.contains("cannot be read: "), "\(text)")
    #expect(!unwrapped(text.output).contains("items none"), "\(text.output)")
    let list = try sandbox.keyhaul("\(line) --list")
    #expect(list.output.contains("Its keychain cannot be read: "), "\(list)")
    let keychain = try #require(
      try sandbox.object(sandbox.keyhaul("\(line) --json").output)["keychain"] as? [String: Any])
    #expect(keychain["items"] is NSNull)
    let page = try sandbox.keyhaul("\(line) --format html -o -").output
    #expect(page.contains("The keychain in this backup cannot be read, so its contents are not known."))
    #expect(!page.contains("is empty"))
  }
}

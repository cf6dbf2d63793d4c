import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Secrecy of device and item commands")
struct ItemSecrecyTests {
  /// The command lines, which are run in this order on one device.
  static let lines = [
    "device list", "device show d", "device lock d", "device unlock d --passcode-command 'echo wrong-code'",
    "device unlock d --passcode-command 'echo 135790'", "device restart d", "item find d",
    "device unlock d --passcode-command 'echo 135790'", "item find d", "item find d --reveal",
    "item find d --service chat.example", "item find d --service wallet", "item find d --kind internet",
    "item add d --service planted --account a --secret-command 'echo planted-by-hand'",
    "item add d --service planted --account a --secret-command 'echo planted-by-hand'",
    "item add d --service planted --account b --secret-command 'echo planted-by-hand' -n",
    "item add d --secret-command 'echo planted-by-hand'", "item find d --format csv",
    "item find d --label '*' --sort name",
    "item update d --service planted --new-secret-command 'echo planted-by-hand' -n",
    "item update d --service planted --new-secret-command 'echo planted-by-hand'",
    "item update d --service planted --new-secret-command 'echo planted-by-hand' --yes",
    "item add d --kind key --secret-command 'echo planted-by-hand'", "item delete d --service planted -n",
    "item delete d --service planted", "item delete d --service '*' --yes",
    "device passcode change d --passcode-command 'echo 135790' --new-passcode-command 'echo 864201'",
    "device passcode remove d --passcode-command 'echo wrong-code' --yes",
    "device passcode remove d --passcode-command 'echo 864201' --yes",
    "device passcode set d --new-passcode-command 'echo 135790'", "device erase d -n", "device erase d --yes",
    "device delete d --confirm d",
  ]

  @Test(
    "No secret, passcode or hardware UID is printed with any output option (5 options, 2 in a quick run)",
    arguments: Cases.chosen(["-vv", "", "-v", "-q", "--json"], quick: 2))
  func scan(flag: String) throws {
    let sandbox = try DeviceSandbox(after: "keyhaul device create d --from old-phone")
    var secrets = ["135790", "864201", "wrong-code", "planted-by-hand"].map { Data($0.utf8) }
    secrets.append(try Data(contentsOf: sandbox.devices.appending(path: "d/hardware.uid")))
    for item in ItemFindTests.items(of: try ItemFindTests.fixture("old-phone")) where item["kind"] != "certificate" {
      // Shorter byte strings occur in the output by chance.
      if let secret = Self.secret(of: item), secret.count > 3 { secrets.append(secret) }
    }
    #expect(secrets.count >= 20)

    var output = Data()
    for line in Self.lines {
      // With --json, the document of this command would contain secrets.
      let revealsInDocument = flag == "--json" && line.hasSuffix("--reveal")
      let outcome = try sandbox.run("keyhaul \(line) \(revealsInDocument ? "-q" : flag)")
      output += Data((outcome.output + outcome.errors).utf8)
    }
    #expect(output.count > 500)
    for secret in secrets {
      for encoding in Self.encodings(of: secret) { #expect(output.range(of: encoding) == nil) }
    }
  }

  /// Returns the secret in an item's description. The secret is text or base64.
  private static func secret(of item: JSONValue) -> Data? {
    if let text = item["secret"]?["text"]?.stringValue { return Data(text.utf8) }
    return item["secret"]?["base64"]?.stringValue.flatMap { Data(base64Encoded: $0) }
  }

  /// Returns the secret unchanged, in base64, and in both cases of hexadecimal.
  private static func encodings(of secret: Data) -> [Data] {
    let hexadecimal = Array(secret).hex
    return [
      secret, Data(secret.base64EncodedString().utf8), Data(hexadecimal.utf8), Data(hexadecimal.uppercased().utf8),
    ]
  }
}

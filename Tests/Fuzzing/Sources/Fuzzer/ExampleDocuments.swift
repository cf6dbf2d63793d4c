import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import KeyhaulKit

/// Examples of exchanged documents, each as a program writes it or as its documentation describes it.
enum ExampleDocuments {
  static let expectations = """
    {"format": "plan-expectations/1", "expectations": [
      {"service": "chat.example", "account": "*", "expect": "migrates"},
      {"kind": "generic-password", "label": "a", "expect": "stays-behind", "reason": "device-bound", "password": true},
      {"access_group": "ABCDE12345.org.example.app", "expect": "absent", "same_device": false}]}
    """

  static let fixture = """
    {"format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z",
     "device": {"name": "phone", "product_type": "iPhone15,2", "product_version": "18.1"},
     "apps": [{"name": "app", "groups": ["ABCDE12345.org.example.app"]}],
     "items": [{"kind": "generic-password", "protection": "ak", "attributes": {"acct": "a", "svce": "s",
       "agrp": "ABCDE12345.org.example.app", "mdat": {"date": "2026-01-01T12:00:00Z"}}, "secret": {"text": "secret"}}]}
    """

  // The output of four programs that dump a keychain.
  private static let objection = """
    [{"item_class": "kSecClassGenericPassword", "accessible_attribute": "kSecAttrAccessibleWhenUnlocked",
      "account": "anna", "service": "chat.example", "entitlement_group": "ABCDE12345.org.example.app",
      "create_date": "2026-11-20 18:04:00 +0000", "data": "secret", "dataHex": "736563726574"}]
    """

  private static let irestore = """
    {"Certs": null, "General": [{"acct": "anna", "svce": "chat.example", "agrp": "ABCDE12345.org.example.app",
      "cdat": "2026-11-20T18:04:00Z", "mdat": null, "pdmn": "ak", "v_Data": "c2VjcmV0"}], "Internet": null, "Keys": null}
    """

  private static let grapefruit = """
    [{"clazz": "generic", "acl": "default", "prot": "kSecAttrAccessibleWhenUnlocked", "account": "anna",
      "service": "chat.example", "entitlementGroup": "ABCDE12345.org.example.app", "generic": "{length = 1, bytes = 0x61}",
      "creation": "2026-11-20T18:04:00.000Z", "data": "{length = 6, bytes = 0x736563726574}", "raw": "c2VjcmV0"}]
    """

  private static let keychainDumper = """
    Generic Password
    ----------------
    Service: chat.example
    Account: anna
    Entitlement Group: ABCDE12345.org.example.app
    Label: <616263>
    \u{1B}[33mAccessible Attribute: kSecAttrAccessibleWhenUnlocked, protection level 2 (default)
    \u{1B}[37mDescription: (null)
    Comment: (null)
    Synchronizable: 0
    Generic Field: (null)
    Keychain Data: secret

    [INFO] No Internet Password Keychain items found.
    Identity
    --------
    Key
    ---
    Entitlement Group: a
    Label: b
    Application Label: c

    """

  /// Returns keychain dumps: tables in both formats of property lists, and the output of the four programs.
  static func dumps() throws -> [[UInt8]] {
    let entry: PropertyValue = .dictionary([
      "acct": .string("anna"), "svce": .string("chat.example"), "agrp": .string("ABCDE12345.org.example.app"),
      "pdmn": .string("ak"), "v_Data": .data(Array("secret".utf8)),
    ])
    let tables: PropertyValue = .dictionary(["genp": .array([entry]), "inet": .array([])])
    let propertyLists = [try BinaryPlist.encode(tables), try XMLPlist.encode(tables)]
    let texts = [objection, irestore, grapefruit, keychainDumper].map { Array($0.utf8) }
    return propertyLists + texts
  }

  /// Returns a plan of the sample items and of an item that cannot be decrypted.
  static func plan() throws -> PlanDocument {
    let entries = try (EncryptedSamples.blobs() + [[3, 0, 0, 0]]).map {
      KeychainBackupFile.Entry(kind: .genericPassword, blob: $0, persistentReference: nil)
    }
    let plan = MigrationPlanner.plan(try EncryptedSamples.opened(entries), onto: [], policy: .replace)
    return PlanDocument(
      planTime: "2026-11-21T09:12:44Z",
      source: .init(
        kind: .archive, name: "family.backup", device: "4C1F0A2B-9D3E5F60718293A4", backupDate: "2026-11-20T18:04:10Z",
        deviceName: "old-phone", encrypted: true, digest: "sha256:" + String(repeating: "4f", count: 32)),
      target: .init(
        name: "new-phone", sameDevice: false, claimsSameDevice: false, state: "unlocked", isPasscodeSet: true,
        itemCount: 2, revision: "r17"),
      plan: plan,
      limitation: .init(sentence: "A backup cannot show everything.", guidance: "Look.", reasons: [.passcodeOnly]))
  }
}

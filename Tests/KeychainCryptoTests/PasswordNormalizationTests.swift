import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Unicode forms of passwords")
struct PasswordNormalizationTests {
  private func form(_ form: PasswordNormalization, of text: String) -> String? {
    guard let normalized = Secret(utf8: text).normalized(form) else { return nil }
    return String(decoding: normalized.revealed, as: UTF8.self)
  }

  /// Compares scalars, because Swift treats the forms of a text as equal.
  private func expect(_ text: String?, _ scalars: [UInt32], sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(text?.unicodeScalars.map(\.value) == scalars, sourceLocation: sourceLocation)
  }

  @Test("Composing and decomposing match the examples of Unicode Annex #15")
  func examples() {
    expect(form(.decomposed, of: "\u{E9}"), [0x65, 0x301])
    expect(form(.composed, of: "e\u{301}"), [0xE9])
    // UAX #15, figures 3 to 5.
    expect(form(.decomposed, of: "\u{212B}"), [0x41, 0x30A])
    expect(form(.composed, of: "\u{212B}"), [0xC5])
    expect(form(.decomposed, of: "\u{1E69}"), [0x73, 0x323, 0x307])
    expect(form(.composed, of: "\u{1E0B}\u{323}"), [0x1E0D, 0x307])
    expect(form(.composed, of: "q\u{307}\u{323}"), [0x71, 0x323, 0x307])
    expect(form(.decomposed, of: "\u{1E9B}\u{323}"), [0x17F, 0x323, 0x307])
  }

  @Test("Hangul syllables are composed and decomposed")
  func hangul() {
    expect(form(.decomposed, of: "\u{D4DB}"), [0x1111, 0x1171, 0x11B6])
    expect(form(.composed, of: "\u{1111}\u{1171}\u{11B6}"), [0xD4DB])
    expect(form(.composed, of: "\u{AC00}\u{11A8}"), [0xAC01])
    // The scalar before the first trailing consonant is not a consonant, and stays.
    #expect(form(.composed, of: "\u{AC00}\u{11A7}") == nil)
    expect(form(.composed, of: "e\u{301}\u{AC00}\u{11A7}\u{11A8}e\u{301}"), [0xE9, 0xAC00, 0x11A7, 0x11A8, 0xE9])
  }

  @Test("Scalars that Unicode excludes from composition, or that a letter separates, are not composed")
  func notComposed() {
    expect(form(.composed, of: "\u{958}"), [0x915, 0x93C])
    #expect(form(.composed, of: "ea\u{301}x") == "e\u{E1}x")
  }

  @Test("Both forms are equal in Swift for every letter that has two forms")
  func agreesWithEquality() {
    for value in (0xA0...0x2FFF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init) {
      let text = "a\(value)b"
      for form in [PasswordNormalization.composed, .decomposed] {
        guard let normalized = self.form(form, of: text) else { continue }
        #expect(normalized == text, "\(value.value)")
        #expect(normalized.unicodeScalars.map(\.value) != text.unicodeScalars.map(\.value))
        #expect(self.form(form, of: normalized) == nil, "\(value.value) is stable")
      }
    }
  }

  @Test("ASCII text, text in the requested form, and bytes that are not UTF-8 have no other form")
  func none() {
    for form in PasswordNormalization.allCases {
      #expect(self.form(form, of: "correct horse") == nil)
      #expect(self.form(form, of: "") == nil)
      let hasForm = Secret(copying: [0xC3, 0x28]).normalized(form) != nil
      #expect(!hasForm)
    }
    #expect(form(.composed, of: "\u{E9}") == nil)
    #expect(form(.decomposed, of: "e\u{301}") == nil)
    #expect(form(.asTyped, of: "\u{E9}") == nil)
  }

  @Test("A byte order mark is removed once, but not from a password that consists only of it")
  func byteOrderMark() {
    #expect(form(.withoutMark, of: "\u{FEFF}test") == "test")
    expect(form(.withoutMark, of: "\u{FEFF}\u{FEFF}x"), [0xFEFF, 0x78])
    expect(form(.composed, of: "\u{FEFF}e\u{301}"), [0xE9])
    expect(form(.decomposed, of: "\u{FEFF}\u{E9}"), [0x65, 0x301])
    #expect(form(.composed, of: "\u{FEFF}test") == nil && form(.decomposed, of: "\u{FEFF}test") == nil)
    #expect(form(.withoutMark, of: "\u{FEFF}") == nil && form(.withoutMark, of: "x\u{FEFF}") == nil)
  }

  @Test("A keybag is unlocked with another form of its password, and the form is reported")
  func opens() throws {
    let hardware = try HardwareUID(from: SeededRandomSource(seed: "form"))
    let cases: [(original: String, typed: String, form: PasswordNormalization)] = [
      ("caf\u{E9}", "caf\u{E9}", .asTyped), ("caf\u{E9}", "cafe\u{301}", .composed),
      ("cafe\u{301}", "caf\u{E9}", .decomposed), ("test", "\u{FEFF}test", .withoutMark),
      ("\u{FEFF}test", "\u{FEFF}test", .asTyped),
    ]
    for (original, typed, expectedForm) in cases {
      let password: Secret? = Secret(utf8: original)
      let keybag = try BackupKeybag.make(
        password: password, deviceKey: try hardware.deviceKey(), rounds: 5, random: SeededRandomSource(seed: "bag")
      ).keybag
      var derivationCount = 0
      let matched = try keybag.matchedPasscodeKey(password: Secret(utf8: typed)) { done, total in
        if done == total { derivationCount += 1 }
        return true
      }
      let form = matched.form
      #expect(form == expectedForm)
      #expect(derivationCount == (form == .asTyped ? 1 : 2))
      let error = #expect(throws: DataProtectionError.self) {
        _ = try keybag.matchedPasscodeKey(password: Secret(utf8: typed + "!"))
      }
      #expect(error?.code == .wrongPassword)
    }
  }

  @Test(
    "A password with 64 or more characters, or with \"!\", a space or a newline at an end, is used unchanged",
    arguments: [
      String(repeating: "0123456789abcdef", count: 4), String(repeating: "x", count: 65), "hunter2!", "hunter2 ",
      " hunter2", "hunter2\n", "hunter2\r\n",
    ])
  func unchanged(text: String) throws {
    let hardware = try HardwareUID(from: SeededRandomSource(seed: "form"))
    let password: Secret? = Secret(utf8: text)
    let keybag = try BackupKeybag.make(
      password: password, deviceKey: try hardware.deviceKey(), rounds: 5, random: SeededRandomSource(seed: "bag")
    ).keybag
    let form = try keybag.matchedPasscodeKey(password: Secret(utf8: text)).form
    #expect(form == .asTyped)
    for wrongPassword in [String(text.dropLast()), text + " ", text + "\n"] {
      let error = #expect(throws: DataProtectionError.self) {
        _ = try keybag.matchedPasscodeKey(password: Secret(utf8: wrongPassword))
      }
      #expect(error?.code == .wrongPassword)
    }
  }
}

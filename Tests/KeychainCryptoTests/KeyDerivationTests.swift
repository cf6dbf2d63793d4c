import Basics
import COpenSSL
import KeychainFormats
import Synchronization
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("PBKDF2")
struct PBKDF2Tests {
  static let engines: [PBKDF2.Engine] = PBKDF2.isAccelerated ? [.openSSL, .shaExtensions] : [.openSSL]

  /// Compares both hashes and both engines with OpenSSL's own PBKDF2.
  private func compare(
    password: [UInt8], salt: [UInt8], iterations: Int, count: Int = 32,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let details: Comment = "password \(password.count), salt \(salt.count), \(iterations) iterations, \(count) bytes"
    let sha1 = OpenSSLOracle.pbkdf2(
      digest: EVP_sha1(), password: password, salt: salt, iterations: iterations, count: count)
    let sha256 = OpenSSLOracle.pbkdf2(
      digest: EVP_sha256(), password: password, salt: salt, iterations: iterations, count: count)
    for engine in Self.engines {
      let sha1Key = try PBKDF2.sha1(
        password: Secret(copying: password), salt: salt, iterations: iterations, count: count, engine: engine)
      #expect(sha1Key.revealed == sha1, "SHA-1, \(engine), \(details)", sourceLocation: sourceLocation)
      let sha256Key = try PBKDF2.sha256(
        password: Secret(copying: password), salt: salt, iterations: iterations, count: count, engine: engine)
      #expect(sha256Key.revealed == sha256, "SHA-256, \(engine), \(details)", sourceLocation: sourceLocation)
    }
  }

  @Test(
    "Both engines agree with OpenSSL for passwords and salts of various lengths and for few iterations",
    arguments: [0, 1, 19, 20, 21, 31, 32, 55, 56, 63, 64, 65, 128, 1000])
  func everyLength(passwordCount: Int) throws {
    var random = SeededRandom(seed: UInt64(passwordCount))
    for saltCount in [0, 1, 20, 64, 1000] {
      for iterations in [1, 2, 3, 7, 1000] {
        try compare(password: random.bytes(passwordCount), salt: random.bytes(saltCount), iterations: iterations)
      }
    }
  }

  @Test("Both engines agree for every salt of up to 200 bytes")
  func saltLengths() throws {
    for saltCount in 0...200 {
      try compare(password: [1, 2, 3], salt: (0..<saltCount).map { UInt8($0) }, iterations: 2)
    }
  }

  @Test("Both engines agree for keys of any length", arguments: [1, 19, 20, 21, 31, 32, 33, 40, 60, 64, 65, 100, 1000])
  func outputLengths(count: Int) throws {
    try compare(
      password: Array("passwordPASSWORDpassword".utf8), salt: Array("saltSALTsaltSALTsaltSALTsaltSALTsalt".utf8),
      iterations: 50, count: count)
  }

  @Test("Both engines agree for iteration counts around the first progress report", arguments: [-1, 0, 1, 2])
  func progressIntervals(difference: Int) throws {
    try compare(password: [7], salt: [8, 9], iterations: PBKDF2.progressInterval + difference)
  }

  @Test("SHA-1 gives the results of RFC 6070")
  func rfc6070() throws {
    let examples: [(password: String, salt: String, iterations: Int, key: String)] = [
      ("password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
      ("password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
      ("password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"),
      (
        "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096,
        "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"
      ),
      ("pass\0word", "sa\0lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"),
    ]
    for example in examples {
      let expected = try [UInt8](hex: example.key)
      for engine in Self.engines {
        let key = try PBKDF2.sha1(
          password: Secret(utf8: example.password), salt: Array(example.salt.utf8), iterations: example.iterations,
          count: expected.count, engine: engine
        ).revealed
        #expect(key == expected)
      }
    }
  }

  @Test("SHA-256 gives the results of RFC 7914 §11, with two blocks each")
  func sha256Examples() throws {
    let examples: [(password: String, salt: String, iterations: Int, key: String)] = [
      (
        "passwd", "salt", 1,
        "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
          + "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"
      ),
      (
        "Password", "NaCl", 80_000,
        "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"
          + "a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"
      ),
    ]
    for example in examples {
      let expected = try [UInt8](hex: example.key)
      for engine in Self.engines {
        let key = try PBKDF2.sha256(
          password: Secret(utf8: example.password), salt: Array(example.salt.utf8), iterations: example.iterations,
          count: expected.count, engine: engine
        ).revealed
        #expect(key == expected)
      }
    }
  }

  @Test("Progress increases to the end with either engine")
  func progress() throws {
    let iterations = PBKDF2.progressInterval * 2 + 10
    let password = Secret(utf8: "long")
    for engine in Self.engines {
      var reports: [Int] = []
      _ = try PBKDF2.sha256(password: password, salt: [1], iterations: iterations, count: 32, engine: engine) { done in
        reports.append(done)
        return true
      }
      #expect(reports == [PBKDF2.progressInterval + 1, PBKDF2.progressInterval * 2 + 1, iterations])

      // 32 bytes are two blocks of SHA-1, so each block is half of the work.
      reports = []
      _ = try PBKDF2.sha1(password: password, salt: [1], iterations: iterations, count: 32, engine: engine) { done in
        reports.append(done)
        return true
      }
      let blockReports = [PBKDF2.progressInterval + 1, PBKDF2.progressInterval * 2 + 1, iterations]
      #expect(reports == blockReports.map { $0 / 2 } + blockReports.map { (iterations + $0) / 2 })
    }
  }

  @Test("A derivation with either hash ends when the progress closure returns false", arguments: engines)
  func stopped(engine: PBKDF2.Engine) throws {
    let iterations = Int(Int32.max)
    var callCount = 0
    func stop(_ done: Int) -> Bool {
      callCount += 1
      return false
    }
    let sha1Error = #expect(throws: DataProtectionError.self) {
      _ = try PBKDF2.sha1(
        password: Secret(utf8: "x"), salt: [1], iterations: iterations, count: 32, engine: engine, progress: stop)
    }
    #expect(sha1Error?.code == .cancelled)
    #expect(callCount == 1)
    let sha256Error = #expect(throws: DataProtectionError.self) {
      _ = try PBKDF2.sha256(
        password: Secret(utf8: "x"), salt: [1], iterations: iterations, count: 32, engine: engine, progress: stop)
    }
    #expect(sha256Error?.code == .cancelled)
    #expect(callCount == 2)
  }

  @Test("A derivation with one iteration reports progress", arguments: engines)
  func oneIteration(engine: PBKDF2.Engine) throws {
    var reports: [Int] = []
    _ = try PBKDF2.sha256(password: .empty, salt: [1], iterations: 1, count: 32, engine: engine) { done in
      reports.append(done)
      return true
    }
    #expect(reports == [1])
  }

  @Test("A derivation without iterations is rejected", arguments: engines)
  func noIterations(engine: PBKDF2.Engine) {
    for iterations in [0, -1] {
      #expect(throws: DataProtectionError.self) {
        _ = try PBKDF2.sha1(password: .empty, salt: [1], iterations: iterations, count: 32, engine: engine)
      }
    }
  }
}

@Suite("Passwords of backups")
struct BackupPasswordTests {
  /// All entries except the slow ones.
  static func quickEntries() throws -> [TestVectors] {
    try TestVectors.list("backup_password").filter { try $0["DPIC"].isNull || $0["DPIC"].integer < 10_000_000 }
  }

  static func parameters(_ entry: TestVectors) throws -> PasswordDerivation.Parameters {
    var parameters = PasswordDerivation.Parameters(
      salt: try entry["SALT"].bytes, iterations: UInt32(try entry["ITER"].integer))
    if try entry["two_rounds"].boolean {
      parameters.sha256Step = .init(salt: try entry["DPSL"].bytes, iterations: UInt32(try entry["DPIC"].integer))
    }
    return parameters
  }

  static func check(_ entry: TestVectors) throws {
    let parameters = try parameters(entry)
    let key = try PasswordDerivation.passcodeKey(
      password: Secret(utf8: entry["password"].string), parameters: parameters)
    #expect(try key.revealed == entry["expect_passcode_key"].bytes)
    let classKey = try KeyWrap.unwrap(entry["WPKY"].bytes, with: key)?.revealed
    #expect(try classKey == entry["expect_class_key"].bytes)
  }

  @Test("The published passwords unlock their keybags, with one step and with two")
  func published() throws {
    let entries = try Self.quickEntries()
    #expect(entries.count == 8)
    for entry in entries { try Self.check(entry) }
  }

  @Test("Another password does not unlock the keybag")
  func wrong() throws {
    for entry in try Self.quickEntries() {
      let password = try entry["password"].string
      for wrongPassword in [password + "\n", password.uppercased() + "!", ""] {
        let key = try PasswordDerivation.passcodeKey(
          password: Secret(utf8: wrongPassword), parameters: Self.parameters(entry))
        let isUnwrapped = try KeyWrap.unwrap(entry["WPKY"].bytes, with: key) != nil
        #expect(!isUnwrapped)
      }
    }
  }

  @Test("Passwords are used byte for byte: accents, encodings and a trailing newline matter")
  func bytesAsTheyAre() throws {
    let parameters = PasswordDerivation.Parameters(salt: [1], iterations: 1)
    let forms: [[UInt8]] = [
      Array("caf\u{E9}".utf8), Array("cafe\u{301}".utf8), [0x63, 0x61, 0x66, 0xE9], Array("caf\u{E9}\n".utf8),
    ]
    let keys = try forms.map {
      try PasswordDerivation.passcodeKey(password: Secret(copying: $0), parameters: parameters).revealed
    }
    #expect(Set(keys).count == forms.count)
  }

  @Test("A password and a salt of a million bytes are accepted")
  func huge() throws {
    let password = [UInt8](repeating: 0x61, count: 1_000_000)
    let salt = [UInt8](repeating: 0x62, count: 1_000_000)
    let parameters = PasswordDerivation.Parameters(
      salt: salt, iterations: 2, sha256Step: .init(salt: salt, iterations: 2))
    let key = try PasswordDerivation.passcodeKey(password: Secret(copying: password), parameters: parameters)
    let sha256Result = OpenSSLOracle.pbkdf2(
      digest: EVP_sha256(), password: password, salt: salt, iterations: 2, count: 32)
    let expected = OpenSSLOracle.pbkdf2(
      digest: EVP_sha1(), password: sha256Result, salt: salt, iterations: 2, count: 32)
    #expect(key.revealed == expected)
  }
}

@Suite("Canceled derivations")
struct StoppedDerivationTests {
  /// Returns the progress reports of a derivation that is canceled at the first report above `maximum`.
  private func reports(sha256: UInt32? = nil, sha1: UInt32, cancelingAbove maximum: Int) -> [Int] {
    let parameters = PasswordDerivation.Parameters(
      salt: [1], iterations: sha1, sha256Step: sha256.map { .init(salt: [2], iterations: $0) })
    var reports: [Int] = []
    let error = #expect(throws: DataProtectionError.self) {
      _ = try PasswordDerivation.passcodeKey(
        password: Secret(utf8: "x"), parameters: parameters, acceptingAtMost: .max
      ) { done, total in
        #expect(total == Int(sha1) + Int(sha256 ?? 0))
        reports.append(done)
        return done <= maximum
      }
    }
    #expect(error?.code == .cancelled)
    return reports
  }

  @Test("A derivation can be canceled in the only step of an old keybag, and in either of two steps")
  func everyStep() {
    // With SHA-1, a report counts half of the iterations: 32 bytes are two blocks.
    #expect(reports(sha1: .max, cancelingAbove: 0) == [(PBKDF2.progressInterval + 1) / 2])
    #expect(reports(sha256: .max, sha1: 10_000, cancelingAbove: 0) == [PBKDF2.progressInterval + 1])
    #expect(reports(sha256: 1, sha1: .max, cancelingAbove: 1) == [1, 1 + (PBKDF2.progressInterval + 1) / 2])
  }

  @Test("The passcode derivation of a device can be canceled at the first progress report")
  func devicePasscode() throws {
    let hardware = try HardwareUID(Secret(copying: [UInt8](repeating: 1, count: 32)))
    var reports: [Int] = []
    let error = #expect(throws: DataProtectionError.self) {
      _ = try hardware.passcodeKey(passcode: .empty, salt: [1], iterations: .max, acceptingAtMost: .max) {
        done, total in
        #expect(total == Int(UInt32.max))
        reports.append(done)
        return false
      }
    }
    #expect(error?.code == .cancelled)
    #expect(reports == [Int(PasscodeTangle.progressInterval)])
  }

  @Test("A short passcode derivation of a device reports only its end")
  func shortDevicePasscode() throws {
    let hardware = try HardwareUID(Secret(copying: [UInt8](repeating: 1, count: 32)))
    var reports: [Int] = []
    _ = try hardware.passcodeKey(passcode: .empty, salt: [1], iterations: 100) { done, _ in
      reports.append(done)
      return true
    }
    #expect(reports == [100])
  }
}

@Suite("Slow derivations")
struct SlowDerivationTests {
  @Test("Four backups with 10,000,000 iterations, or one in a quick run, are unlocked with their passwords")
  func tenMillion() throws {
    let slowEntries = try TestVectors.list("backup_password").filter {
      try !$0["DPIC"].isNull && $0["DPIC"].integer == 10_000_000
    }
    #expect(slowEntries.count == 4)
    for entry in Cases.chosen(slowEntries, quick: 1) { try BackupPasswordTests.check(entry) }
  }
}

@Suite("Keys that a device's chip derives")
struct HardwareTests {
  private func hardware() throws -> HardwareUID {
    try HardwareUID(Secret(copying: (0..<32).map { UInt8($0) }))
  }

  // Computed with Python's hashlib and `cryptography` package, with the salt a0 a1 ... b3. P is
  // pbkdf2_hmac("sha1", passcode, salt, 1, 32). For each n in 1...iterations, the eight little-endian words of P are xored
  // with n. AES-256-CBC with the UID 00 01 ... 1f and a zero IV encrypts all blocks as one chain. The key is the xor of
  // all 32-byte results.
  @Test(
    "The passcode derivation gives the recorded results",
    arguments: [
      ("", 1, "ea32229e6ab6431c6f27e9566c85094f829220ade197746e92494f8999eb58fb"),
      ("1234", 1, "506b4e9b7255db9777792f9d99c6ab04585883c79966531ea2f02a3a11af6108"),
      ("1234", 127, "de6248511a24b12c6d46b456e5785ee9cbbe87095b6a2a4d4c0674723ada1013"),
      ("1234", 128, "57781e6d5a53ba2268589475ddc91013afdb22ad73a79945a69b446ee3066712"),
      ("1234", 129, "26e87a16d092af9d146c67fe01ded6ef32ae20331d9cd7380d901828f60eb20c"),
      ("1234", 1000, "980e613f661bbfde3120b8c036ef22b2a04431e54d48c8b9fea9721f24adda5d"),
      ("hunter2", 50_000, "225263cb62b27d66bcc4ce51109eb4b33562299b66cae0bb60d17f01f1f1418c"),
      ("", 50_000, "590a65427bc57b1ae30728232abd08511e2a5f3dcbbd6513cbf3d004124f7dce"),
    ])
  func passcodeKey(passcode: String, iterations: UInt32, expected: String) throws {
    let salt = (0..<20).map { UInt8(0xA0 + $0) }
    let key = try hardware().passcodeKey(passcode: Secret(utf8: passcode), salt: salt, iterations: iterations)
    #expect(key.revealed.hex == expected)
  }

  @Test("Key 0x835 is the encryption of sixteen bytes 01 with the UID")
  func key835() throws {
    let key = try hardware().deviceKey()
    // `openssl enc -aes-256-ecb` of the same block, through Python's `cryptography`.
    let revealed = try key.withKey { (secret) throws(DataProtectionError) in secret.revealed }
    #expect(revealed.hex == "75e20829172112bbf2a04d3d2b12433d")
  }

  @Test("A UID must have 32 bytes, and a device key 16")
  func sizes() {
    for count in [0, 16, 31, 33] {
      #expect(throws: DataProtectionError.self) {
        _ = try HardwareUID(Secret(copying: [UInt8](repeating: 0, count: count)))
      }
    }
    for count in [0, 15, 17, 32] {
      #expect(throws: DataProtectionError.self) {
        _ = try DeviceKey(Secret(copying: [UInt8](repeating: 0, count: count)))
      }
    }
  }
}

import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Leaks of secrets")
struct LeakTests {
  /// Twenty secrets, text and bytes, from 24 to 4,096 bytes.
  static let secrets: [[UInt8]] = (0..<20).map { index in
    var random = SeededRandom(seed: UInt64(index) + 101)
    let isText = index < 10
    if isText {
      let letters = Array("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789".utf8)
      return (0..<24 + index * 40).map { _ in letters.randomElement(using: &random) ?? 0 }
    }
    let byteCount = [32, 33, 64, 100, 256, 512, 1000, 2048, 4000, 4096][index - 10]
    return (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
  }

  /// The flags for every level of detail, as text and as JSON.
  static let modes = ["-vv", "--json", "", "-v", "--json -vv", "-q"]

  /// Returns the modes in which a line is run: the two modes with the most output, and one of the other modes in turn.
  /// Commands with many lines are therefore run in all modes.
  static func modes(ofLine index: Int) -> [String] {
    func command(_ line: String) -> Substring { line.prefix { $0 != " " } }
    let earlierLineCount = lines[..<index].count { command($0) == command(lines[index]) }
    return modes.prefix(2) + [modes[2 + earlierLineCount % (modes.count - 2)]]
  }

  /// Returns the modes of a line in a quick run: the first mode, and for every third line also a second mode.
  static func quickModes(ofLine index: Int) -> [String] {
    let modes = modes(ofLine: index)
    return modes.prefix(1) + (index.isMultiple(of: 3) ? [modes[1 + (index / 3) % 2]] : [])
  }

  /// Command lines that succeed and others that fail, in the order in which they are run.
  static let lines = moves + views + inspections + exports + simulators + changes + failures + finalCommands

  private static let moves: [String] =
    PhoneSandbox.backupEndings.map { "b" + $0 }.flatMap { name in
      [
        "backup old-phone -o \(name) --password-file .bp --rounds 1 --yes",
        "plan \(name) --to new-phone --password-file .bp",
      ]
    }

  private static let views: [String] =
    [
      "backup old-phone -o plain.tar --no-password --yes", "backup old-phone -o plain/ --no-password --yes",
      "plan plain.tar --to new-phone -o plain.plan --yes",
      "plan b.tar --to new-phone --password-file .bp --format html -o plan.html --yes",
      "plan b.tar --to old-phone --password-file .bp --format html",
      "plan b.tar --to old-phone --password-file .bp -o own.plan --yes",
      "plan b.tar --to new-phone --password-file .bp --existing merge -o move.plan --yes",
      "plan old-phone --to new-phone", "plan old-phone --to new-phone --format html -o device.html --yes",
    ]
    + ["--compare", "--by-app", "--audit", "--redact", "--expect expected.json", "--exit-code"].flatMap { view in
      ["plan b.tar --to new-phone --password-file .bp \(view)", "plan old-phone --to new-phone \(view)"]
    }

  private static let inspections: [String] =
    // A password for a backup without a password would be refused.
    [("b.zip", " --password-file .bp"), ("plain.tar", "")].flatMap { backup, password in
      [
        "inspect \(backup)\(password)", "inspect \(backup)", "inspect \(backup)\(password) --list",
        "inspect \(backup) --list", "inspect \(backup)\(password) --keybag", "inspect \(backup) --keybag",
        "inspect \(backup)\(password) --tree", "inspect \(backup) --tree",
        "restore \(backup) --to new-phone\(password) -n", "verify \(backup)\(password)", "verify \(backup) --quick",
        "diff \(backup) old-phone\(password)", "diff new-phone \(backup)\(password) --exit-code",
        "why \(backup) --service planted\(password)",
        "why \(backup) --service planted --account n1 --to new-phone\(password)",
      ]
    } + ["why old-phone --service planted --account n3", "why b.tar --service nothing --password-file .bp"]

  /// Exports of names, and exports that are refused without --reveal.
  private static let exports = [
    "export b.tar -o names.json --password-file .bp --yes", "export old-phone -o names.json --yes",
    "export b.tar -o - --password-file .bp", "export b.tar -o names.csv --password-file .bp --yes",
    "export b.tar -o names.otp --format otpauth --password-file .bp --yes", "export old-phone -o names.pem --yes",
    "export b.tar -o names.txt --format wifi --password-file .bp --yes",
    "export b/ --domain KeychainDomain --path keychain-backup.plist -o sealed.plist --password-file .bp --yes",
    "export b/ --domain KeychainDomain --path nothing -o sealed.plist --password-file .bp --yes",
  ]

  /// Commands for a Simulator's keychain, which contains the keys of its items.
  private static let simulators = [
    "device export old-phone -o sim/keychain-2-debug.db --yes", "simulator list .", "inspect sim --list", "verify sim",
    "item find sim --service planted", "item delete sim --service planted --account n0 --yes",
    "simulator seed sim --from b.tar --password-file .bp --yes", "simulator seed sim --from b.tar --password-file .np",
    "restore b.tar --to sim --password-file .bp --existing merge --yes", "simulator snapshot sim -o saved.db --yes",
    "simulator restore sim saved.db --yes", "simulator reset sim --app nobody --yes",
    "item find b.zip --service planted --password-file .bp",
    "item update b.zip --service planted --account n1 --new-label other --password-file .bp --yes",
  ]

  private static let changes = [
    "convert b/ -o copy.zip --yes", "convert b.zip -o copy/ --yes", "convert b/ -o b/copy.tar",
    "rekey b.zip --password-file .bp --new-password-file .np",
    "rekey b.zip --password-file .np --new-password-file .bp",
    "rekey b/ --password-file .bp --new-password-file .np -n", "rekey plain/ --new-password-file .np --rounds 5",
    "rekey plain/ --no-password --password-file .np", "seal b/ --password-file .bp",
  ]

  private static let failures = [
    "device serve old-phone --trust once --listen 0.0.0.0:27015", "device serve nobody --trust always",
    "device serve old-phone --trust once --listen b.tar -v", "device serve old-phone --no-input",
    "device serve old-phone old-phone --trust once", "device serve old-phone --rounds 0 --trust once",
    "inspect b.tar --list --password-file .np", "verify b.tar --password-file .np",
    "diff b.tar b.zip --password-file .np", "export b.tar -o x.json --password-file .np",
    "rekey b.tar --password-file .np --new-password-file .np", "plan b.tar --to new-phone --password-file .np",
    "restore b.tar --to new-phone --password-file .np", "why b.tar --item 0 --password-file .np",
    "verify cut.tar --password-file .bp", "inspect cut.tar --list --password-file .bp",
    "plan cut.tar --to new-phone --password-file .bp", "restore cut.tar --to new-phone --password-file .bp",
    "export cut.tar -o x.json --password-file .bp", "convert cut.tar -o x.tar",
    "seal b.tar --password-file .np",
    "export b.tar -o nowhere/x.json --password-file .bp", "convert b/ -o nowhere/x.tar",
    "restore b.tar --to new-phone --plan own.plan --password-file .bp",
    "restore b.tar --to new-phone --only few --password-file .bp -n",
  ]

  private static let finalCommands = [
    "restore b.tar --to new-phone --password-file .bp --yes",
    "restore b.tar --to old-phone --password-file .bp --yes --existing merge", "item find old-phone",
    "item find new-phone --service planted", "device list", "device show old-phone", "device fixture new-phone",
    "device create another --from new-phone",
    "item find old-phone --service planted --reveal --user-presence", "explain device-bound", "completions bash",
    "version",
    "device lock old-phone", "backup old-phone -o locked.tar --password-file .bp",
    "restore b.tar --to old-phone --password-file .bp", "item find old-phone --service planted",
  ]

  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "planted secrets") { sandbox in
      for (index, secret) in Self.secrets.enumerated() {
        try sandbox.write(secret, to: ".secret")
        let protection = ["ak", "ck", "dk", "aku", "cku", "dku", "akpu"][index % 7]
        try sandbox.succeed(
          "item add old-phone --service planted --account n\(index) --protection \(protection) --secret-file .secret")
      }
      try FileManager.default.removeItem(at: sandbox.home.appending(path: ".secret"))
      try sandbox.write(Array("battery staple\n".utf8), to: ".np")
      try sandbox.write(Array(#"{"indexes": [0, 1]}"#.utf8), to: "few")
      try sandbox.write(
        Array(
          #"{"format":"plan-expectations/1","expectations":[{"service":"planted","expect":"migrates"}]}"#.utf8),
        to: "expected.json")
      try sandbox.backUp(to: "complete.tar")
      try sandbox.devices.run("mkdir sim")
      try sandbox.write(sandbox.read("complete.tar").dropLast(20_000) as [UInt8], to: "cut.tar")
    }
  }

  private static let plantedSecrets: PlantedSecrets = {
    var planted = PlantedSecrets()
    for (index, secret) in secrets.enumerated() { planted.add("secret \(index)", secret) }
    planted.add("the password", Array(PhoneSandbox.password.utf8))
    planted.add("the new password", Array("battery staple".utf8))
    return planted
  }()

  /// Starts to watch the files that commands write, except in devices' folders and password files.
  private func watchFiles(in sandbox: PhoneSandbox) throws -> FileWatcher {
    // Hard links in this folder keep the contents of files that a command deletes.
    let linkDirectory = sandbox.home.deletingLastPathComponent().appending(path: "kept")
    return try FileWatcher(in: [sandbox.home], keptIn: linkDirectory) { path in
      !path.hasPrefix("devices/") && path != ".bp" && path != ".np"
    }
  }

  @Test("Every command is covered by the search for leaks")
  func complete() {
    // The demo has only invented secrets, in its own folder.
    let commands = Set(HelpTests.commandNames).subtracting(["demo"])
    let lines = Self.lines + ItemSecrecyTests.lines
    for command in commands { #expect(lines.contains { $0.hasPrefix(command) }, "\(command)") }
    for command in ["backup", "inspect", "verify", "diff", "export", "rekey", "convert", "plan", "restore", "why"] {
      let indexes = Self.lines.indices.filter { Self.lines[$0].hasPrefix(command) }
      #expect(Set(indexes.flatMap(Self.modes(ofLine:))) == Set(Self.modes), "\(command)")
    }
  }

  @Test(
    "Output and files contain no secret, key or password (3 modes, 1 or 2 in a quick run)")
  func noSecret() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("mkdir tmp")
    let watcher = try watchFiles(in: sandbox)
    let printed = try runAllLines(in: sandbox)
    // The search would prove little if the commands printed little.
    #expect(printed.count > (Cases.isExhaustive ? 200_000 : 60_000))
    #expect(try sandbox.names(in: "tmp").isEmpty)
    try decompress(in: sandbox)
    var contents = try watcher.contents()
    for file in try sandbox.files(in: ".") where file != ".bp" && file != ".np" {
      contents[file] = try Data(contentsOf: sandbox.home.appending(path: file))
    }
    contents["the printed output"] = printed
    for name in [
      "b/Manifest.db", "own.plan", "names.json", "sealed.plist", "copy.zip", "plan.html",
      "devices/old-phone/keychain-2.db",
    ] {
      #expect(contents[name] != nil, "\(name)")
    }
    for name in ["b.gz.raw", "b.zip.raw"] { #expect(try #require(contents[name]).count > 40_000, "\(name)") }
    // Temporary files were searched too.
    #expect(contents.keys.contains { $0.hasPrefix("the file") && $0.contains(".tmp") })
    #expect(Self.plantedSecrets.locations(in: contents) == [])
    // A device's folder contains its hardware UID, because there is no chip. The device key is derived when it is needed.
    var deviceSecrets = PlantedSecrets()
    for device in ["old-phone", "new-phone"] {
      deviceSecrets.add("the hardware UID of \(device)", try sandbox.read("devices/\(device)/hardware.uid"))
      deviceSecrets.add("the device key of \(device)", try sandbox.deviceKey(of: device))
    }
    #expect(deviceSecrets.locations(in: contents.filter { !$0.key.hasSuffix("hardware.uid") }) == [])
  }

  /// Runs all command lines in their modes, and returns what they print.
  private func runAllLines(in sandbox: PhoneSandbox) throws -> Data {
    var printed = Data()
    for (index, line) in Self.lines.enumerated() {
      for mode in Cases.isExhaustive ? Self.modes(ofLine: index) : Self.quickModes(ofLine: index) {
        let outcome = try sandbox.devices.run("TMPDIR=$PWD/tmp keyhaul \(line) \(mode)")
        printed += Data(outcome.output.utf8) + Data(outcome.errors.utf8)
        // From 128 on, the exit code of the shell means that a signal ended the program.
        #expect(outcome.status < 128, "\(line) \(mode): \(outcome)")
      }
    }
    return printed
  }

  /// Decompresses the compressed backups, in which a search would not find the secrets.
  private func decompress(in sandbox: PhoneSandbox) throws {
    try sandbox.devices.run("gzip -dc b.tar.gz > b.gz.raw; unzip -p b.zip > b.zip.raw; true")
    let decompressedSize = try sandbox.devices.run("zstd -qdc b.tar.zst > b.zst.raw; wc -c < b.zst.raw").output
    if decompressedSize.trimmingCharacters(in: .whitespacesAndNewlines) == "0" {
      Issue.record(
        Comment("zstd is not installed here: the uncompressed b.tar.zst was not searched"), severity: .warning)
    }
  }

  @Test("--reveal writes secrets only to the named file, in which the search finds them")
  func reveal() throws {
    let sandbox = try sandbox()
    let planted = Self.plantedSecrets
    let find = "item find old-phone --service planted --json"
    #expect(planted.locations(in: ["json": Data(try sandbox.succeed("\(find) --reveal").utf8)]).count == 20)
    #expect(planted.locations(in: ["json": Data(try sandbox.succeed(find).utf8)]) == [])
    let watcher = try watchFiles(in: sandbox)
    try sandbox.backUp(to: "b.tar")
    var printed = Data()
    // Two of the 20 items are never in a backup, because their class is akpu. A CSV contains at least the secrets that are
    // text: nine of the other 18.
    let exports: [(source: String, output: String, secretCount: Int)] = [
      ("b.tar --password-file .bp", "revealed.json", 18), ("old-phone", "revealed2.json", 20),
      ("b.tar --password-file .bp", "revealed.csv", 9),
    ]
    for (source, output, secretCount) in exports {
      let outcome = try sandbox.keyhaul("export \(source) -o \(output) --reveal -vv")
      #expect(outcome.status == 0, "\(outcome)")
      printed += Data((outcome.output + outcome.errors).utf8)
      let file = Data(try sandbox.read(output))
      #expect(planted.locations(in: ["file": file]).count >= secretCount, "\(output)")
    }
    var contents = try watcher.contents().filter { !$0.key.contains("revealed") }
    contents["the printed output"] = printed
    #expect(planted.locations(in: contents) == [])
    // As a control, check that the search does find a hardware UID.
    let uid = try sandbox.read("devices/old-phone/hardware.uid")
    var hardwareUID = PlantedSecrets()
    hardwareUID.add("the hardware UID", uid)
    #expect(hardwareUID.locations(in: ["file": Data(uid)]) == ["the hardware UID in file"])
  }
}

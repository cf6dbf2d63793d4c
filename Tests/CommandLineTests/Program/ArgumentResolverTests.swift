import Testing

@testable import keyhaul

@Suite("Meaning of source arguments")
struct ArgumentResolverTests {
  let resolver = ArgumentResolver(
    deviceFolder: "/home",
    content: { path in
      switch path {
      case "/home/old-phone", "/home/both", "./elsewhere/phone", "local", "./local": .device
      case "family.backup", "both", "./both", "a/b.tar", "old-phone.backup": .file
      case "photos", "./photos", "/home/junk": .directory
      default: .absent
      }
    }, deviceNames: { ["old-phone", "both"] })

  @Test("A device is a name in the device folder, or a path with a slash")
  func device() throws {
    #expect(try resolver.device("old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(try resolver.device("device:old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(try resolver.device("./elsewhere/phone") == .device(name: "phone", directory: "./elsewhere/phone"))
    #expect(try resolver.device("both") == .device(name: "both", directory: "/home/both"))
  }

  @Test("An unknown device is not found, and a similar name is suggested")
  func noDevice() {
    let failure = thrownError { _ = try resolver.device("old-phne") }
    #expect(failure?.status == .notFound)
    #expect(failure?.message == "there is no device named old-phne")
    #expect(failure?.advice == "old-phone")
    #expect(status { _ = try resolver.device("junk") } == .notFound)
    #expect(status { _ = try resolver.device("./photos") } == .notFound)
    #expect(status { _ = try resolver.device("no/such") } == .notFound)
  }

  private func status(_ body: () throws -> Void) -> CommandExitStatus? { thrownError(body)?.status }

  @Test("A backup is any existing path or standard input, and a device's name means the device")
  func backup() throws {
    #expect(try resolver.backup("family.backup") == .backup(path: "family.backup"))
    #expect(try resolver.backup("photos") == .backup(path: "photos"))
    #expect(try resolver.backup("-") == .standardInput)
    #expect(status { _ = try resolver.backup("nothing") } == .notFound)
    #expect(try resolver.backup("old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(status { _ = try resolver.backup("") } == .usage)
  }

  @Test("If an argument may be a device or a backup, the content of the path decides")
  func either() throws {
    #expect(try resolver.deviceOrBackup("old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(try resolver.deviceOrBackup("family.backup") == .backup(path: "family.backup"))
    #expect(try resolver.deviceOrBackup("./elsewhere/phone") == .device(name: "phone", directory: "./elsewhere/phone"))
    #expect(try resolver.deviceOrBackup("a/b.tar") == .backup(path: "a/b.tar"))
    #expect(try resolver.deviceOrBackup("local") == .device(name: "local", directory: "./local"))
    #expect(try resolver.deviceOrBackup("-") == .standardInput)
  }

  @Test("A name that is both a device and a file is an error, and can be made unambiguous")
  func both() throws {
    let failure = thrownError { _ = try resolver.deviceOrBackup("both") }
    #expect(failure?.status == .usage)
    #expect(failure?.advice == "device:both or ./both")
    #expect(try resolver.deviceOrBackup("device:both") == .device(name: "both", directory: "/home/both"))
    #expect(try resolver.deviceOrBackup("./both") == .backup(path: "./both"))
  }

  @Test("A device's name also works inside the device folder, and is ambiguous if another file has this name")
  func deviceFolder() throws {
    let sandbox = try DeviceSandbox(after: "keyhaul device create phone --from old-phone -q")
    let command = "keyhaul item find phone --service chat.example"
    let inFolder = try sandbox.run("cd devices; \(command)")
    let elsewhere = try sandbox.run(command)
    #expect(inFolder.status == 0 && elsewhere.status == 0, "\(inFolder) \(elsewhere)")
    #expect(inFolder.output == elsewhere.output)
    for line in ["cd devices; keyhaul plan phone -q", "ln -s devices/phone phone; keyhaul plan phone -q; rm phone"] {
      let outcome = try sandbox.run(line)
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(line): \(outcome)")
    }
    let ambiguous = try sandbox.run("mkdir phone; keyhaul plan phone -q; status=$?; rmdir phone; exit $status")
    #expect(
      ambiguous.status == 64 && ambiguous.errors.contains("phone is both a device and a file here"), "\(ambiguous)")
  }

  @Test("A name that is neither a device nor a file is not found")
  func neither() {
    #expect(status { _ = try resolver.deviceOrBackup("nothing") } == .notFound)
    #expect(status { _ = try resolver.deviceOrBackup("no/such") } == .notFound)
  }

  @Test(
    "A device name has up to 64 letters, digits and three other characters",
    arguments: [
      ("a", true), ("Old_Phone-2.1", true), (String(repeating: "a", count: 64), true),
      (String(repeating: "a", count: 65), false), ("", false), (".hidden", false), ("-x", false), ("_x", false),
      ("a b", false), ("a/b", false), ("ü", false), ("a\n", false), ("..", false), ("a\u{0}", false),
      ("a\u{301}", false),
    ])
  func names(name: String, isValid: Bool) {
    #expect(status { _ = try resolver.deviceName(name) } == (isValid ? nil : .usage))
  }
}

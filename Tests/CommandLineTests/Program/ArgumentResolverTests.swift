import Testing

@testable import keyhaul

@Suite("What an argument refers to")
struct ArgumentResolverTests {
  let resolver = ArgumentResolver(
    home: "/home",
    content: { path in
      switch path {
      case "/home/old-phone", "/home/both", "./elsewhere/phone", "local", "./local": .device
      case "family.backup", "both", "./both", "a/b.tar", "old-phone.backup": .file
      case "photos", "./photos", "/home/junk": .directory
      default: .absent
      }
    }, deviceNames: { ["old-phone", "both"] })

  @Test("a device is a name under the home folder, or a path with a slash")
  func device() throws {
    #expect(try resolver.device("old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(try resolver.device("device:old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(try resolver.device("./elsewhere/phone") == .device(name: "phone", directory: "./elsewhere/phone"))
    #expect(try resolver.device("both") == .device(name: "both", directory: "/home/both"))
  }

  @Test("a device that does not exist is not found, and the near one is named")
  func noDevice() {
    let failure = ending { _ = try resolver.device("old-phne") }
    #expect(failure?.status == .notFound)
    #expect(failure?.message == "there is no device named old-phne")
    #expect(failure?.advice == "old-phone")
    #expect(status { _ = try resolver.device("junk") } == .notFound)
    #expect(status { _ = try resolver.device("./photos") } == .notFound)
    #expect(status { _ = try resolver.device("no/such") } == .notFound)
  }

  private func status(_ body: () throws -> Void) -> CommandStatus? { ending(body)?.status }

  @Test("an archive is any path that exists, or standard input")
  func archive() throws {
    #expect(try resolver.archive("family.backup") == .archive(path: "family.backup"))
    #expect(try resolver.archive("photos") == .archive(path: "photos"))
    #expect(try resolver.archive("-") == .standardInput)
    #expect(status { _ = try resolver.archive("nothing") } == .notFound)
    #expect(try resolver.archive("old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(status { _ = try resolver.archive("") } == .usage)
  }

  @Test("where either is possible, a name is what there is, and a path is what it holds")
  func either() throws {
    #expect(try resolver.deviceOrArchive("old-phone") == .device(name: "old-phone", directory: "/home/old-phone"))
    #expect(try resolver.deviceOrArchive("family.backup") == .archive(path: "family.backup"))
    #expect(try resolver.deviceOrArchive("./elsewhere/phone") == .device(name: "phone", directory: "./elsewhere/phone"))
    #expect(try resolver.deviceOrArchive("a/b.tar") == .archive(path: "a/b.tar"))
    #expect(try resolver.deviceOrArchive("local") == .device(name: "local", directory: "./local"))
    #expect(try resolver.deviceOrArchive("-") == .standardInput)
  }

  @Test("a name that is both is an error, and can be said exactly")
  func both() throws {
    let failure = ending { _ = try resolver.deviceOrArchive("both") }
    #expect(failure?.status == .usage)
    #expect(failure?.advice == "device:both or ./both")
    #expect(try resolver.deviceOrArchive("device:both") == .device(name: "both", directory: "/home/both"))
    #expect(try resolver.deviceOrArchive("./both") == .archive(path: "./both"))
  }

  @Test("a name that is neither is not found")
  func neither() {
    #expect(status { _ = try resolver.deviceOrArchive("nothing") } == .notFound)
    #expect(status { _ = try resolver.deviceOrArchive("no/such") } == .notFound)
  }

  @Test(
    "a device's name has letters, digits and three signs, up to 64",
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

@Suite("Where virtual devices live")
struct HomeDirectoryTests {
  @Test("the flag comes first, then the environment, then the platform's place")
  func order() throws {
    let environment = ["KEYHAUL_HOME": "/k", "XDG_DATA_HOME": "/x", "HOME": "/h"]
    #expect(try HomeDirectory.path(flag: "/f", environment: environment) == "/f")
    #expect(try HomeDirectory.path(flag: nil, environment: environment) == "/k")
    let place = try HomeDirectory.path(flag: nil, environment: ["HOME": "/h"])
    #if canImport(Darwin)
      #expect(place == "/h/Library/Application Support/keyhaul")
    #else
      #expect(place == "/h/.local/share/keyhaul")
      #expect(try HomeDirectory.path(flag: nil, environment: ["XDG_DATA_HOME": "/x", "HOME": "/h"]) == "/x/keyhaul")
      #expect(
        try HomeDirectory.path(flag: nil, environment: ["XDG_DATA_HOME": "x", "HOME": "/h"])
          == "/h/.local/share/keyhaul")
    #endif
  }

  @Test("without any of them there is no place")
  func none() throws {
    #expect(try HomeDirectory.path(flag: nil, environment: ["KEYHAUL_HOME": ""]) == nil)
    #expect(ending { _ = try HomeDirectory.path(flag: "", environment: ["HOME": "/h"]) }?.status == .usage)
  }
}

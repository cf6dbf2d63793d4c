import Backups
import KeychainFormats
import KeychainRules
import Keychains
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("The story of one item")
struct StoryFinderTests {
  private let phones: TwoPhones
  private let path: String

  init() throws {
    phones = try TwoPhones()
    path = try phones.desk.backUp(phones.old, password: Desk.password)
  }

  private func finder(_ account: String, index: Int? = nil) -> StoryFinder {
    StoryFinder(
      .init(ItemQuery(attributes: [.account: .string(account)]), index: index) {
        $0[.account]?.stringValue == account
      })
  }

  @Test("is found in the archive, with what the restore would do on the target")
  func archived() throws {
    let target = try phones.new.held(.reading)
    defer { target.invalidate() }
    let archive = try phones.desk.open(path, password: Desk.password, on: target)
    let plan = try Restorer.plan(archive, onto: target, policy: .replace)
    let stories = try finder("ak").stories(in: archive, named: "b", maker: nil, onto: (target, plan))
    let story = try #require(stories.first)
    #expect(stories.count == 1 && story.place == .archive(index: 0) && story.identity.account == "ak")
    #expect(story.onTarget?.outcome == .migrates(.new) && story.prospects.count == 4)
  }

  @Test("has a place that the archive has, or is refused")
  func places() throws {
    let archive = try phones.desk.open(path, password: Desk.password, on: nil)
    let count = archive.items.count
    let last = try finder("aku", index: count - 1).stories(in: archive, named: "b", maker: nil, onto: nil)
    #expect(last.count <= 1)
    for index in [-1, count] {
      let error = try migrationError {
        _ = try finder("ak", index: index).stories(in: archive, named: "b", maker: nil, onto: nil)
      }
      #expect(error?.code == .noSuchItem && error?.category == .usage)
      #expect(error?.reason == "b has \(count) items, counted from 0")
    }
  }

  @Test("is asked of the device that made the archive where the archive lacks it, and of the target's own items")
  func elsewhere() throws {
    let maker = try phones.old.held()
    let target = try phones.new.held()
    defer {
      maker.invalidate()
      target.invalidate()
    }
    try maker.plant(.password("later", .whenUnlocked), .password("never", .whenPasscodeSetThisDeviceOnly))
    try target.plant(.password("own", .whenUnlocked))
    let archive = try phones.desk.open(path, password: Desk.password, on: target)
    let plan = try Restorer.plan(archive, onto: target, policy: .replace)
    func place(_ account: String) throws -> ItemStory.Place? {
      try finder(account).stories(in: archive, named: "b", maker: maker, onto: (target, plan)).first?.place
    }
    #expect(try place("later") == .missing(from: maker.name, rule: nil))
    #expect(try place("never") == .missing(from: maker.name, rule: .passcodeOnly))
    #expect(try place("own") == .targetOnly(isRemoved: true))
    #expect(try place("nobody") == nil)
  }

  @Test("is told of a device as of the backup that it would give now")
  func device() throws {
    let held = try phones.old.held()
    defer { held.invalidate() }
    let stories = try finder("aku").stories(on: held, onto: nil, policy: .replace)
    let story = try #require(stories.first)
    #expect(stories.count == 1 && story.identity.account == "aku")
    #expect(story.prospects[RestoreSetting(hasPassword: true, onSameDevice: false)] == .staysBehind(.deviceBound))
    #expect(try finder("nobody").stories(on: held, onto: nil, policy: .replace).isEmpty)
  }
}

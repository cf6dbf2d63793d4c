import Basics
import Foundation
import KeyhaulTesting
import TestSupport
import Testing

@Suite("Phones in tests")
struct PhoneTests {
  @Test("Locking, restarting, and unlocking a phone change the items that its app can read")
  func locking() throws {
    let phone = try Phone()
    try phone.run {
      SignIn.add("foreground", "f", kSecAttrAccessibleWhenUnlocked)
      SignIn.add("background", "b", kSecAttrAccessibleAfterFirstUnlock)
    }
    func readable() throws -> [String] {
      try phone.run { ["foreground", "background"].filter { SignIn.secret(of: $0) != nil } }
    }
    try phone.lock()
    #expect(try readable() == ["background"])
    try phone.restart()
    #expect(try readable() == [])
    try phone.unlock()
    #expect(try readable() == ["foreground", "background"])
  }

  @Test("A move from a locked phone throws an error")
  func lockedMove() throws {
    let phone = try Phone()
    try phone.run { SignIn.remember() }
    try phone.lock()
    let moveError = error { try phone.move(to: .newPhone, backup: .encrypted) }
    #expect(moveError?.code == .locked)
    #expect(moveError?.description.hasSuffix("; try: unlock() before it") == true)
    try phone.restart()
    #expect(error { try phone.moves() }?.code == .locked)
  }

  @Test("A phone accepts only its passcode, which can be changed and removed")
  func passcode() throws {
    let phone = try Phone(passcode: "1111")
    try phone.lock()
    #expect(error { try phone.unlock(passcode: "2222") }?.code == .wrongPasscode)
    try phone.unlock()
    try phone.removePasscode()
    #expect(phone.passcode == nil)
    #expect(error { try phone.lock() }?.code == .noPasscode)
    try phone.setPasscode("3333")
    try phone.restart()
    try phone.unlock(passcode: "3333")
    #expect(try Phone(passcode: nil).passcode == nil)
  }

  @Test("Apps on a phone share only the items of their common access groups")
  func accessGroups() throws {
    let phone = try Phone(apps: ["notes": ["team.notes", "team.shared"], "widget": ["team.shared"]])
    try phone.run(as: "notes") {
      SignIn.add("private", "p")
      SignIn.add("shared", "s", group: "team.shared")
    }
    try phone.run(as: "widget") {
      #expect(SignIn.secret(of: "shared") == "s")
      #expect(SignIn.secret(of: "private") == nil)
    }
    #expect(error { try phone.run { SignIn.remember() } }?.code == .appNotNamed)
    let nameError = error { try phone.run(as: "widgte") { SignIn.remember() } }
    #expect(nameError?.code == .noSuchApp && nameError?.advice == "\"widget\"")
    let newPhone = try phone.move(to: .newPhone, backup: .encrypted).restore()
    try newPhone.run(as: "widget") { #expect(SignIn.secret(of: "shared") == "s") }
  }

  @Test("A phone cannot have two apps with the same name")
  func sameApp() {
    #expect(error { try Phone(apps: ["notes": ["a"], "notes": ["b"]]) }?.code == .badApps)
  }

  @Test("The user of a phone answers a prompt only as the test specifies")
  func user() throws {
    let phone = try Phone()
    try phone.run { SignIn.addGuarded("vault") }
    #expect(try phone.run { SignIn.secret(of: "vault") } == nil)
    for user in Phone.User.allCases {
      phone.user = user
      #expect(phone.user == user)
      #expect(try phone.run { SignIn.secret(of: "vault") } == (user == .allows ? "guarded" : nil))
    }
  }

  @Test("A phone can be created from a bundled fixture or a fixture file")
  func fixtures() throws {
    let phone = try Phone(fixture: "old-phone")
    #expect(try phone.itemCount == 22)
    #expect(phone.apps.contains("chat"))
    try phone.run(as: "chat") { #expect(SignIn.secret(of: "push token") != nil) }
    try phone.lock()
    try phone.unlock()
    let file = Repository.root.appending(path: "Fixtures/devices/old-phone.json").path
    #expect(try Phone(fixtureFile: file).itemCount == 22)
  }

  @Test("A missing or invalid fixture is an error")
  func wrongFixtures() throws {
    let nameError = error { try Phone(fixture: "old-fone") }
    #expect(nameError?.code == .noSuchFixture && nameError?.reason == "\"old-phone\" is similar")
    #expect(error { try Phone(fixtureFile: "no/such.json") }?.code == .noSuchFixture)
    let otherFile = Repository.root.appending(path: "Fixtures/backup-faults.json").path
    #expect(error { try Phone(fixtureFile: otherFile) }?.code == .badFixture)
    #expect(error { try Phone(ios: "soon") }?.code == .underlying)
  }

  @Test("Each task has its own phone, so that tests can run concurrently")
  func concurrentTasks() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<16 {
        group.addTask {
          let phone = try Phone()
          try await phone.run {
            await Task.yield()
            SignIn.add("mine", "\(number)")
            await Task.yield()
          }
          let move = try phone.move(to: .newPhone, backup: .encrypted)
          #expect(move.items.count == 1)
          try move.restore().run { #expect(SignIn.secret(of: "mine") == "\(number)") }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("A phone exists as long as it is used by a client, even on another thread")
  func threads() async throws {
    let client = try Phone().client()
    let status = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(returning: DefaultKeychain.using(client) { SignIn.add("from a thread", "t") })
      }
    }
    #expect(status == errSecSuccess)
    #expect(DefaultKeychain.using(client) { SignIn.secret(of: "from a thread") } == "t")
  }

  @Test("Two phones can be moved to each other at the same time")
  func mutualMoves() async throws {
    let phone = try Phone()
    let otherPhone = try Phone()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { _ = try phone.move(to: otherPhone, backup: .encrypted) }
        group.addTask { _ = try otherPhone.move(to: phone, backup: .encrypted) }
      }
      try await group.waitForAll()
    }
  }
}

import Basics
import KeyhaulTesting
import XCTest

/// The same test without Swift Testing.
final class MovingToANewPhone: XCTestCase {
  func testSessionMoves() throws {
    let phone = try Phone()
    try phone.run { SignIn.remember() }
    let move = try phone.move(to: .newPhone, backup: .encrypted)
    XCTAssertEqual(move["session token"], .migrates)
    XCTAssertEqual(move["device id"], .staysBehind(.deviceBound))
  }
}

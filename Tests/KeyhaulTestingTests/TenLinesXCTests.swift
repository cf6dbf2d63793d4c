import Basics
import KeyhaulTesting
import XCTest

/// The ten-line test with XCTest.
final class TenLinesXCTests: XCTestCase {
  func testSessionMoves() throws {
    let phone = try Phone()
    try phone.run { SignIn.remember() }
    let move = try phone.move(to: .newPhone, backup: .encrypted)
    XCTAssertEqual(move["session token"], .migrates)
    XCTAssertEqual(move["device id"], .staysBehind(.deviceBound))
  }
}

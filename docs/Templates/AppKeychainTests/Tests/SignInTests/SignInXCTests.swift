import KeyhaulTesting
import XCTest

@testable import SignIn

final class MovingToANewPhone: XCTestCase {
  func testSession() throws {
    let phone = try Phone()
    try phone.run { SignIn.remember() }
    let move = try phone.move(to: .newPhone, backup: .encrypted)
    XCTAssertEqual(move["session token"], .migrates)
    XCTAssertEqual(move["device id"], .staysBehind(.deviceBound))
  }
}

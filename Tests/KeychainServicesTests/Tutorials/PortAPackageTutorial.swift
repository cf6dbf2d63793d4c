import Foundation
import KeyhaulTesting
import Testing

@Test func aTicketIsForThePersonWhoIsThere() throws {
  let phone = try Phone()
  let tickets = Tickets(service: "org.example.tickets")
  try phone.run { try tickets.keep(Data("row 7".utf8), for: "opera") }

  // No user answers the prompt.
  try phone.run {
    #expect(throws: Tickets.Failure.self) { try tickets.ticket(for: "opera") }
  }
  phone.user = .allows
  #expect(try phone.run { try tickets.ticket(for: "opera") } == Data("row 7".utf8))
  #expect(try phone.run { try tickets.ticket(for: "cinema") } == nil)

  // No backup contains an item that requires a passcode.
  let new = try phone.move(to: .newPhone, backup: .encrypted).restore()
  new.user = .allows
  #expect(try new.run { try tickets.ticket(for: "opera") } == nil)
}

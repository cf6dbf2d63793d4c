import Foundation
import KeyhaulTesting
import Testing

@Test func aTicketIsForThePersonWhoIsThere() throws {
  let phone = try Phone()
  let tickets = Tickets(service: "org.example.tickets")
  try phone.run { try tickets.keep(Data("row 7".utf8), for: "opera") }

  // Nobody answers.
  try phone.run {
    #expect(throws: Tickets.Failure.self) { try tickets.ticket(for: "opera") }
  }
  phone.person = .allows
  #expect(try phone.run { try tickets.ticket(for: "opera") } == Data("row 7".utf8))
  #expect(try phone.run { try tickets.ticket(for: "cinema") } == nil)

  // What needs a passcode is in no backup.
  let new = try phone.move(to: .newPhone, backup: .encrypted).restore()
  new.person = .allows
  #expect(try new.run { try tickets.ticket(for: "opera") } == nil)
}

import Foundation
import KeyhaulTesting
import Testing

@Test func aTicketRequiresUserPresence() throws {
  let phone = try Phone()
  let tickets = Tickets(service: "org.example.tickets")
  try phone.run { try tickets.save(Data("row 7".utf8), for: "opera") }

  // By default, no user is there to answer the prompt.
  try phone.run {
    #expect(throws: Tickets.Failure.self) { try tickets.ticket(for: "opera") }
  }
  phone.user = .allows
  #expect(try phone.run { try tickets.ticket(for: "opera") } == Data("row 7".utf8))
  #expect(try phone.run { try tickets.ticket(for: "cinema") } == nil)

  // No backup contains an item that requires a passcode.
  let newPhone = try phone.move(to: .newPhone, backup: .encrypted).restore()
  newPhone.user = .allows
  #expect(try newPhone.run { try tickets.ticket(for: "opera") } == nil)
}

import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Progress lines")
struct ProgressLineTests {
  /// Waits until a terminal shows a text.
  private func wait(for text: String, on terminal: PseudoTerminal) {
    while !terminal.transcript.contains(text) { terminal.collect(milliseconds: 50) }
  }

  @Test("A progress line names the work, shows its progress, and disappears")
  func shown() throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY)
    defer { close(descriptor) }
    let line = ProgressLine("Deriving key: 10,000,000 iterations", style: .plain, descriptor: descriptor)
    wait(for: "Deriving key: 10,000,000 iterations ...", on: terminal)
    line.update(done: 9, total: 16)
    wait(for: "iterations  9 of 16", on: terminal)
    // A second end has no effect.
    line.end()
    line.end()
    terminal.collect(milliseconds: 50)
    // The cursor returns to the start of the line, and the line is cleared.
    #expect(terminal.transcript.hasSuffix("\r\u{1B}[K"))
    #expect(!terminal.transcript.contains("\n"))
  }

  @Test("A progress line is escaped, and cut at the width of the terminal")
  func narrow() throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY)
    defer { close(descriptor) }
    let style = TextStyle(width: 20, usesColor: false, isUnicode: true)
    let line = ProgressLine("Reading \u{1B}[2J and more of it", style: style, descriptor: descriptor)
    wait(for: "…", on: terminal)
    line.end()
    #expect(terminal.transcript.hasPrefix("\rReading \\u{1B}[2J …"))
  }

  @Test("A progress line without a thread is drawn when the work reports its progress")
  func withoutThread() throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY)
    defer { close(descriptor) }
    let line = ProgressLine(
      "Sealing items", style: .plain, descriptor: descriptor, delay: 0, startThread: { _, _ in false })
    line.update(done: 9, total: 16)
    terminal.collect(milliseconds: 50)
    #expect(terminal.transcript.contains("Sealing items  9 of 16"))
    line.end()
    terminal.collect(milliseconds: 50)
    #expect(terminal.transcript.hasSuffix("\r\u{1B}[K"))
  }

  @Test("No progress line appears for short work")
  func fast() throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY)
    defer { close(descriptor) }
    let line = ProgressLine("Fast", style: .plain, descriptor: descriptor, delay: 3600)
    terminal.collect(milliseconds: 400)
    line.end()
    terminal.collect(milliseconds: 50)
    #expect(terminal.transcript == "")
  }
}

import KeyhaulKit
import Reports

extension PlanReport {
  /// Creates a report on a plan for a device in its current state.
  init(
    _ plan: MigrationPlan, of source: ReportSource, onto device: DeviceSession, isRedacted: Bool = false
  ) throws(CommandError) {
    do throws(KeyhaulError) {
      try self.init(plan, of: source, onto: device, made: device.environment.clock.now(), isRedacted: isRedacted)
    } catch {
      throw CommandError(error, device: device.name)
    }
  }
}

from ._arrow_states import arrow_states as arrow_states
from ._equal_mass_cells import equal_mass_cells as equal_mass_cells
from ._monitor import CalibrationMonitor as CalibrationMonitor
from ._monitor_result import MonitorResult as MonitorResult
from ._redrawn_cells import RedrawnCells as RedrawnCells
from ._scan import scan as scan
from ._state import CalibrationState as CalibrationState

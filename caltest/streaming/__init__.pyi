from .monitors._monitor import CalibrationMonitor as CalibrationMonitor
from .monitors._monitor_result import MonitorResult as MonitorResult
from .monitors._noticed_error import NoticedError as NoticedError
from .scans._scan import scan as scan
from .states._arrow_states import arrow_states as arrow_states
from .states._equal_mass_cells import equal_mass_cells as equal_mass_cells
from .states._redrawn_cells import RedrawnCells as RedrawnCells
from .states._state import CalibrationState as CalibrationState

! The oracle of the Fortran programs: what a program says it called, from its own source. See README.md, and
! oracle.h for the text of a call; here the values that are not known in the text are put in with //.
! External procedures with old-fashioned interfaces, so that all three kinds of Fortran program can use them
! (oracle.inc declares the functions). Nothing here knows which fields a call has.

subroutine say(text)
  ! One call: "MPI_Send count=10 type=MPI_INTEGER dest=1".
  implicit none
  character(len=*), intent(in) :: text
  integer, parameter :: most = 400
  character(len=1500) :: lines(most)
  integer :: calls
  common /orclin/ calls, lines
  character(len=1500) :: line
  character(len=24), external :: num
  integer :: at, from, equal
  logical :: first
  line = '"i":'//trim(num(calls))//',"call":"'
  from = 1
  first = .true.
  do while (from <= len_trim(text))
     at = index(text(from:), ' ') - 1
     if (at < 0) at = len(text) - from + 1
     if (at > 0) then
        if (first) then
           line = trim(line)//text(from:from + at - 1)//'"'
           first = .false.
        else
           equal = index(text(from:), '=')
           call field(line, text(from:from + equal - 2), text(from + equal:from + at - 1))
        end if
     end if
     from = from + at + 1
  end do
  if (calls >= most) stop 'oracle: too many calls'
  calls = calls + 1
  lines(calls) = line
end subroutine say

subroutine field(line, name, value)
  ! Numbers, lists, true, false and null stand bare; the rest are strings.
  implicit none
  character(len=*), intent(inout) :: line
  character(len=*), intent(in) :: name, value
  logical :: bare
  bare = index('0123456789-[', value(1:1)) > 0 .or. value == 'true' .or. value == 'false' .or. value == 'null'
  ! The second of a name in one object is NAME2 (rank is there already).
  if (name == 'rank' .or. index(line, '"'//name//'":') > 0) then
     line = trim(line)//',"'//name//'2":'
  else
     line = trim(line)//',"'//name//'":'
  end if
  if (bare) then
     line = trim(line)//value
  else
     line = trim(line)//'"'//value//'"'
  end if
end subroutine field

subroutine orwrit(rank)
  ! Writes PREFIX.<rank>.jsonl if ST_ORACLE=PREFIX is set. Call it last.
  implicit none
  integer, intent(in) :: rank
  integer, parameter :: most = 400
  character(len=1500) :: lines(most)
  integer :: calls
  common /orclin/ calls, lines
  character(len=1000) :: prefix
  character(len=24), external :: num
  integer :: i
  call get_environment_variable('ST_ORACLE', prefix)
  if (prefix == '') return
  open (unit=77, file=trim(prefix)//'.'//trim(num(rank))//'.jsonl', status='replace', action='write', recl=2000)
  do i = 1, calls
     write (77, '(a)') '{"rank":'//trim(num(rank))//','//trim(lines(i))//'}'
  end do
  close (77)
end subroutine orwrit

block data orcdat
  implicit none
  integer, parameter :: most = 400
  character(len=1500) :: lines(most)
  integer :: calls
  common /orclin/ calls, lines
  logical :: used(0:31), keeps(0:31), gets(0:31)
  integer :: size(0:31)
  common /orcslt/ used, keeps, gets, size
  data calls /0/, used /32*.false./
end block data orcdat

! ---- values ----

character(len=24) function num(i)
  implicit none
  integer, intent(in) :: i
  write (num, '(i0)') i
end function num

character(len=24) function lng(i)
  implicit none
  integer(8), intent(in) :: i
  write (lng, '(i0)') i
end function lng

character(len=24) function flg(l)
  implicit none
  logical, intent(in) :: l
  flg = merge('true ', 'false', l)
end function flg

character(len=24) function rnk(r)
  ! A rank, or one of the constants that stand for one.
  implicit none
  include 'mpif.h'
  integer, intent(in) :: r
  character(len=24), external :: num
  rnk = num(r)
  if (r == MPI_PROC_NULL) rnk = 'MPI_PROC_NULL'
  if (r == MPI_ANY_SOURCE) rnk = 'MPI_ANY_SOURCE'
  if (r == MPI_ROOT) rnk = 'MPI_ROOT'
end function rnk

character(len=24) function tagged(t)
  implicit none
  include 'mpif.h'
  integer, intent(in) :: t
  character(len=24), external :: num
  tagged = num(t)
  if (t == MPI_ANY_TAG) tagged = 'MPI_ANY_TAG'
end function tagged

character(len=200) function list(n, a)
  implicit none
  integer, intent(in) :: n, a(*)
  character(len=24), external :: num
  integer :: i
  list = '['
  do i = 1, n
     if (i > 1) list = trim(list)//','
     list = trim(list)//num(a(i))
  end do
  list = trim(list)//']'
end function list

character(len=200) function flags(n, a)
  implicit none
  integer, intent(in) :: n
  logical, intent(in) :: a(*)
  character(len=24), external :: flg
  integer :: i
  flags = '['
  do i = 1, n
     if (i > 1) flags = trim(flags)//','
     flags = trim(flags)//flg(a(i))
  end do
  flags = trim(flags)//']'
end function flags

! ---- request slots: the lowest free number, from the start of an operation to its completion ----

integer function sltake(keep, get, bytes)
  implicit none
  logical, intent(in) :: keep, get
  integer, intent(in) :: bytes
  logical :: used(0:31), keeps(0:31), gets(0:31)
  integer :: size(0:31)
  common /orcslt/ used, keeps, gets, size
  sltake = 0
  do while (used(sltake))
     sltake = sltake + 1
  end do
  used(sltake) = .true.
  keeps(sltake) = keep
  gets(sltake) = get
  size(sltake) = bytes
end function sltake

integer function slsend()
  ! For a send, a collective operation or any other thing that is not a receive.
  implicit none
  integer, external :: sltake
  slsend = sltake(.false., .false., 0)
end function slsend

integer function slrecv(bytes)
  ! For a receive that will get so many bytes.
  implicit none
  integer, intent(in) :: bytes
  integer, external :: sltake
  slrecv = sltake(.false., .true., bytes)
end function slrecv

integer function slsini()
  ! For a persistent send.
  implicit none
  integer, external :: sltake
  slsini = sltake(.true., .false., 0)
end function slsini

integer function slrini(bytes)
  ! For a persistent receive.
  implicit none
  integer, intent(in) :: bytes
  integer, external :: sltake
  slrini = sltake(.true., .true., bytes)
end function slrini

subroutine slfree(s)
  ! The request is gone: MPI_Request_free, or the message was received.
  implicit none
  integer, intent(in) :: s
  logical :: used(0:31), keeps(0:31), gets(0:31)
  integer :: size(0:31)
  common /orcslt/ used, keeps, gets, size
  used(s) = .false.
end subroutine slfree

character(len=200) function slots(n, s)
  ! A list of slots; -1 is a null request.
  implicit none
  integer, intent(in) :: n, s(*)
  character(len=24), external :: num
  integer :: i
  slots = '['
  do i = 1, n
     if (i > 1) slots = trim(slots)//','
     if (s(i) < 0) then
        slots = trim(slots)//'null'
     else
        slots = trim(slots)//num(s(i))
     end if
  end do
  slots = trim(slots)//']'
end function slots

character(len=1000) function done(n, positions, s, sources, tags)
  ! The completed requests, at positions (from 1) of the slots s; a request that does not persist leaves its slot.
  implicit none
  integer, intent(in) :: n, positions(*), s(*), sources(*), tags(*)
  logical :: used(0:31), keeps(0:31), gets(0:31)
  integer :: size(0:31)
  common /orcslt/ used, keeps, gets, size
  character(len=24), external :: num, quoted
  integer :: i, k
  done = '['
  do i = 1, n
     k = s(positions(i))
     if (i > 1) done = trim(done)//','
     done = trim(done)//'{"request":'//num(k)
     if (gets(k)) then
        done = trim(done)//',"source":'//trim(quoted(sources(i), .true.))//',"tag":'//trim(quoted(tags(i), .false.))// &
             ',"bytes":'//trim(num(size(k)))//'}'
     else
        done = trim(done)//',"source":null,"tag":null,"bytes":null}'
     end if
  end do
  done = trim(done)//']'
  do i = 1, n
     k = s(positions(i))
     if (.not. keeps(k)) used(k) = .false.
  end do
end function done

character(len=24) function quoted(v, rank)
  ! A rank or a tag inside a list.
  implicit none
  integer, intent(in) :: v
  logical, intent(in) :: rank
  character(len=24), external :: rnk, tagged
  quoted = tagged(v)
  if (rank) quoted = rnk(v)
  if (quoted(1:1) == 'M') quoted = '"'//trim(quoted)//'"'
end function quoted
